//! The Secrets: edited, deleted, damaged, made by others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::World;
use serde_json::json;

/// An edited password is put in force by SQL, derived keys follow, and no pod is touched.
#[test]
fn an_edited_password_is_put_in_force() {
    let hard = "a,b=c:d/e?f#g[h]@i%j+k l'm\"n\\o\u{e9}";
    for password in ["another-Secret-1", hard] {
        let mut world = World::ready();
        let pod = world.objects[&world.names().primary_pod()].clone();
        world.write_password(password);
        world.settle();
        assert_eq!(world.story(), "Ready/True/AllChecksPassed");
        assert_eq!(world.server.roles["admin"], password);
        assert_eq!(world.objects[&world.names().primary_pod()], pod);
        let id = world.names().credentials_secret();
        assert_eq!(world.secret(&id, "password"), password);
        let uri = world.secret(&id, "uri");
        let inner = uri.strip_prefix("postgresql://admin:").unwrap();
        let encoded = inner.split('@').next().unwrap();
        let decoded = percent_encoding::percent_decode_str(encoded).decode_utf8().unwrap();
        assert_eq!(decoded, password);
        assert!(!world.root["status"].to_string().contains("Secret-1"));
    }
}

/// A deleted Secret is made anew, once, with another password.
#[test]
fn a_deleted_secret_is_replaced() {
    let mut world = World::ready();
    let id = world.names().credentials_secret();
    let old = world.secret(&id, "password");
    world.objects.remove(&id);
    world.pass();
    assert_eq!(world.story(), "Provisioning/False/ChildMissing");
    world.settle_rolling();
    assert_eq!(world.phase(), "Ready");
    let new = world.secret(&id, "password");
    assert_ne!(old, new);
    assert_eq!(world.server.roles["admin"], new);
    let made = world.writes.iter().filter(|w| w.starts_with("create")).count();
    assert_eq!(made, 1, "{:?}", world.writes);
}

/// The operator went away after the Secret was made and before the role was altered: no second
/// password is made (fault catalogue PG-08).
#[test]
fn pg_08_a_crash_between_secret_and_role_makes_no_second_password() {
    let mut world = World::ready();
    let id = world.names().credentials_secret();
    world.objects.remove(&id);
    world.pass();
    let new = world.secret(&id, "password");
    // A new process knows only what is stored; its passes begin here.
    world.settle_rolling();
    assert_eq!(world.secret(&id, "password"), new);
    assert_eq!(world.server.roles["admin"], new);
}

#[test]
fn unusable_passwords_are_refused_and_the_old_one_stays() {
    let table = [
        ("S3cret!!\n", "PasswordUnusable", "ends with a line feed"),
        ("S3cret!!\r", "PasswordUnusable", "ends with a carriage return"),
        ("S3c\0ret!", "PasswordUnusable", "holds a control character"),
        ("", "PasswordMissing", "is empty"),
    ];
    for (password, reason, words) in table {
        let mut world = World::ready();
        let before = world.server.roles["admin"].clone();
        world.write_password(password);
        world.settle();
        let (ready, told, message) = world.condition("Ready");
        assert_eq!((ready.as_str(), told.as_str()), ("False", reason), "{password:?}");
        assert!(message.contains(words), "{message}");
        assert_eq!(world.server.roles["admin"], before);
        assert_eq!(world.condition("Degraded").1, reason);
        world.write_password("good-enough-again");
        world.settle_rolling();
        assert_eq!(world.phase(), "Ready");
    }
}

/// The key goes while a parameter is edited: the parameter is applied, the key is named, and the
/// role's password is left alone (fault catalogue PG-49).
#[test]
fn pg_49_a_password_key_gone_during_another_edit() {
    let mut world = World::ready();
    let id = world.names().credentials_secret();
    let before = world.server.roles["admin"].clone();
    world.meddle(&id, |secret| {
        secret["data"].as_object_mut().unwrap().remove("password");
    });
    world.edit(|root| root["spec"]["parameters"] = json!({"work_mem": "64MB"}));
    world.settle_rolling();
    let (_, reason, message) = world.condition("Ready");
    assert_eq!(reason, "PasswordMissing");
    assert!(message.contains("the key password is absent"), "{message}");
    assert_eq!(world.server.roles["admin"], before);
    let conf = &world.objects[&world.names().config_map()]["data"]["postgresql.conf"];
    assert!(conf.as_str().unwrap().contains("work_mem = '64MB'"));
}

/// A Secret that a user made before the Database is used as it is and never written (PG-09).
#[test]
fn pg_09_a_users_own_credentials_are_used() {
    let mut world = World::new();
    let id = world.names().credentials_secret();
    let theirs = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {},
        "data": {"password": "dGhlaXJzLTEyMzQ="},
    });
    world.store(&id, theirs);
    let before = world.objects[&id].clone();
    world.bring_up();
    assert_eq!(world.objects[&id], before);
    assert_eq!(world.server.roles["admin"], "theirs-1234");
    world.meddle(&id, |s| s["data"] = json!({"user": "eA=="}));
    world.settle();
    assert_eq!(world.condition("Ready").1, "PasswordMissing");
}

/// While a password cannot be used nothing of its Secret is written, and nothing is told as taken
/// back that is not.
#[test]
fn nothing_is_told_as_taken_back_while_the_password_is_unusable() {
    let names = World::ready().names();
    let all = [names.credentials_secret(), names.superuser_secret(), names.replication_secret()];
    for id in all {
        let mut world = World::ready();
        world.meddle(&id, |secret| {
            secret["data"]["password"] = json!("");
            secret["metadata"]["labels"]["app.kubernetes.io/component"] = json!("other");
        });
        for _ in 0..6 {
            let plan = world.pass();
            let told = plan.events.iter().any(|event| event.reason == "EditReverted");
            assert!(!told, "{id}: {:?}", plan.events);
            world.advance(30);
        }
        assert_eq!(world.condition("Ready").1, "PasswordMissing", "{id}");
    }
}
