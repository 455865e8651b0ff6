//! What hands behind the operator's back change in records, Secrets and inside the server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::World;
use phased::fact::{Fate, Trouble};
use serde_json::json;

const IDENTIFIER: &str = "7000000000000000001";

/// The ConfigMap's record goes before the status, whatever was written there (G-57).
#[test]
fn g_57_an_edited_status_is_rebuilt_from_the_record() {
    for edited in [json!("7999999999999999999"), json!(null), json!("")] {
        let mut world = World::ready();
        world.root["status"]["systemIdentifier"] = edited.clone();
        world.settle();
        assert_eq!(world.phase(), "Ready", "{edited}");
        assert_eq!(world.root["status"]["systemIdentifier"], IDENTIFIER);
        let data = &world.objects[&world.names().config_map()]["data"];
        assert_eq!(data["system-identifier"], IDENTIFIER);
        assert_eq!(data["bootstrap"], "refused");
        let wrote_record = world.writes.iter().any(|w| w.contains("ConfigMap"));
        assert!(!wrote_record, "{:?}", world.writes);
    }
}

fn lose_superuser(world: &mut World) {
    let id = world.names().superuser_secret();
    world.server.roles.insert("postgres".to_owned(), "the-old-one".to_owned());
    world.objects.remove(&id);
    world.settle_rolling();
}

/// The same while no command may be run: the operator tries again and again, so nothing settles.
fn lose_superuser_for_good(world: &mut World) {
    forbid(world);
    let id = world.names().superuser_secret();
    world.server.roles.insert("postgres".to_owned(), "the-old-one".to_owned());
    world.objects.remove(&id);
    pass_often(world);
}

fn forbid(world: &mut World) {
    world.exec_trouble = Some(Trouble {
        fate: Fate::UserMustAct,
        reason: "Forbidden".to_owned(),
        message: "recover-superuser: no right to create pods/exec".to_owned(),
    });
}

fn pass_often(world: &mut World) {
    for _ in 0..12 {
        world.pass();
    }
}

fn recoveries(world: &World) -> usize {
    world.writes.iter().filter(|write| *write == "act recover-superuser").count()
}

/// A Secret that is made anew, or edited, is put in force over the local socket; the application is
/// served meanwhile.
#[test]
fn a_superuser_that_is_refused_is_let_in_again() {
    for edited in [false, true] {
        let mut world = World::ready();
        let id = world.names().superuser_secret();
        world.writes.clear();
        if edited {
            world.meddle(&id, |secret| {
                secret["data"]["password"] = json!("YW5vdGhlci1wYXNzd29yZA==");
            });
            world.settle_rolling();
        } else {
            lose_superuser(&mut world);
        }
        assert_eq!(recoveries(&world), 1, "{:?}", world.writes);
        assert_eq!(world.server.roles["postgres"], world.secret(&id, "password"));
        assert_eq!(world.phase(), "Ready");
        assert_eq!(world.condition("Degraded").0, "False");
        let moved =
            world.writes.iter().any(|write| write.contains("status") && write.contains("Failed"));
        assert!(!moved, "{:?}", world.writes);
    }
}

/// Nobody is told that it is done when it is not, and it goes on once the right is granted.
#[test]
fn a_command_that_may_not_be_run_is_told_and_healed() {
    let mut world = World::ready();
    lose_superuser_for_good(&mut world);
    assert_eq!(world.phase(), "Ready");
    let (status, reason, message) = world.condition("Degraded");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "ActionFailed"));
    assert!(message.contains("create pods/exec"), "{message}");
    world.exec_trouble = None;
    world.settle();
    assert_eq!(world.condition("Degraded").0, "False");
}

/// What does not help is not done again for the same Secret, and a person is told the way out.
#[test]
fn a_recovery_is_tried_once_for_each_version_of_the_secret() {
    let mut world = World::ready();
    world.server.deaf = true;
    world.writes.clear();
    lose_superuser(&mut world);
    world.advance(3600);
    pass_often(&mut world);
    assert_eq!(recoveries(&world), 1, "{:?}", world.writes);
    assert_eq!(world.phase(), "Ready");
    let (_, reason, message) = world.condition("Degraded");
    assert_eq!(reason, "SuperuserLoginFailed");
    assert!(message.contains("it did not help") && message.contains("\\password"), "{message}");
    let id = world.names().superuser_secret();
    world.server.deaf = false;
    world.meddle(&id, |secret| secret["data"]["password"] = json!("YW5vdGhlci1wYXNzd29yZA=="));
    world.settle();
    assert_eq!(recoveries(&world), 2, "{:?}", world.writes);
    assert_eq!(world.condition("Degraded").0, "False");
}

/// The gate: our set's pod, ready and staying; a usable Secret; not while paused.
#[test]
fn no_command_is_run_where_the_gate_is_shut() {
    type Shut = (&'static str, fn(&mut World));
    let cases: [Shut; 4] = [
        ("is not controlled by", |world| {
            let id = world.names().primary_pod();
            world.meddle(&id, |pod| pod["metadata"]["ownerReferences"][0]["uid"] = json!("other"));
        }),
        ("is not ready", |world| {
            let id = world.names().primary_pod();
            world.meddle(&id, |pod| pod["status"]["conditions"] = json!([]));
        }),
        ("is being deleted", |world| {
            let id = world.names().primary_pod();
            world.meddle(&id, |pod| {
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
            });
        }),
        ("because the annotation steadfast.dev/paused", pause),
    ];
    for (words, shut) in cases {
        let mut world = World::ready();
        world.server.roles.insert("postgres".to_owned(), "the-old-one".to_owned());
        world.writes.clear();
        shut(&mut world);
        for _ in 0..6 {
            world.pass();
        }
        assert_eq!(recoveries(&world), 0, "{words}: {:?}", world.writes);
        let message = world.condition("Degraded").2;
        assert!(message.contains(words), "{words}: {message}");
    }
}

/// A server with other data, or without our configuration, is left as it is: the statements say so
/// themselves, whatever was seen before.
#[test]
fn another_server_is_not_touched() {
    let mut world = World::ready();
    world.server.identity = Some("somebody-else".to_owned());
    world.server.roles.insert("postgres".to_owned(), "the-old-one".to_owned());
    let credentials = world.names().credentials_secret();
    world.objects.remove(&credentials);
    pass_often(&mut world);
    assert_eq!(world.server.roles["postgres"], "the-old-one");
    assert_eq!(world.story(), "Provisioning/False/ActionFailed");
    assert!(world.condition("Degraded").2.contains("another server"));
}

/// No password is made that could never be put in force, not even while the server is down.
#[test]
fn no_password_is_made_while_the_superuser_is_refused() {
    for down in [false, true] {
        let mut world = World::ready();
        lose_superuser_for_good(&mut world);
        let credentials = world.names().credentials_secret();
        world.objects.remove(&credentials);
        world.server.up = !down;
        pass_often(&mut world);
        let reason = if down { "SuperuserLoginFailed" } else { "ActionFailed" };
        assert_eq!(world.story(), format!("Provisioning/False/{reason}"));
        let message = world.condition("Degraded").2;
        assert!(message.contains(&credentials.to_string()), "{message}");
        assert!(!world.objects.contains_key(&credentials));
        world.server.up = true;
        world.exec_trouble = None;
        world.settle_rolling();
        assert_eq!(world.phase(), "Ready");
        assert_eq!(world.server.roles["admin"], world.secret(&credentials, "password"));
    }
}

/// The same while the spec is refused in part, where the rung that makes Secrets merely tends.
#[test]
fn no_password_is_made_while_the_spec_is_held_either() {
    for refused in [true, false] {
        let mut world = World::ready();
        if refused {
            lose_superuser_for_good(&mut world);
        }
        world.edit(|root| root["spec"]["databaseName"] = json!("other"));
        pass_often(&mut world);
        assert_eq!(world.condition("Ready").1, "RenameRefused");
        let credentials = world.names().credentials_secret();
        world.objects.remove(&credentials);
        pass_often(&mut world);
        assert_eq!(world.objects.contains_key(&credentials), !refused);
    }
}

/// A database that was served and is gone is never made anew by itself, with or without its role.
#[test]
fn a_dropped_database_is_not_made_anew() {
    for role_too in [false, true] {
        let mut world = World::ready();
        world.server.databases.remove("mydb");
        if role_too {
            world.server.roles.remove("admin");
        }
        world.settle();
        assert_eq!(world.story(), "Failed/False/DataMissing");
        let (status, reason, message) = world.condition("Degraded");
        assert_eq!((status.as_str(), reason.as_str()), ("True", "DataMissing"));
        assert!(message.contains("database \"mydb\" existed and is gone"), "{message}");
        world.advance(3600);
        world.settle();
        assert!(world.server.databases.is_empty(), "not after any time");
        world.edit(|root| {
            root["metadata"]["annotations"] = json!({"steadfast.dev/accept-data-loss": "7"});
        });
        world.settle();
        assert!(world.server.databases.is_empty(), "the annotation must name the data");
        world.edit(|root| {
            root["metadata"]["annotations"] = json!({"steadfast.dev/accept-data-loss": IDENTIFIER});
        });
        world.settle();
        assert_eq!(world.phase(), "Ready");
        assert_eq!(world.server.databases["mydb"], "admin");
        // The data go on under the same identifier, so the word must be taken back.
        assert_eq!(world.condition("Degraded").1, "DataLossAccepted");
        world.edit(|root| root["metadata"]["annotations"] = json!({}));
        world.settle();
        assert_eq!(world.condition("Degraded").0, "False");
    }
}

/// Whatever keeps the role out besides its password is taken back with it.
#[test]
fn a_role_that_is_locked_out_is_let_in_again() {
    let locks: [fn(&mut World); 3] = [
        |world| world.server.expired = true,
        |world| world.server.limit = 0,
        |world| {
            world.server.expired = true;
            world.server.limit = 0;
        },
    ];
    for lock in locks {
        let mut world = World::ready();
        lock(&mut world);
        world.settle();
        assert_eq!(world.phase(), "Ready");
        assert!(world.writes.contains(&"act set-password".to_owned()), "{:?}", world.writes);
        assert!(!world.server.expired && world.server.limit == -1);
    }
}

fn pause(world: &mut World) {
    world.edit(|root| root["metadata"]["annotations"] = json!({"steadfast.dev/paused": "true"}));
}

fn resume(world: &mut World) {
    world.edit(|root| root["metadata"]["annotations"] = json!({}));
}

/// What a paused Database lacks is told as not done, and is done once it is resumed.
#[test]
fn a_pause_is_no_failure_and_nothing_is_said_to_be_done() {
    let lacks: [fn(&mut World); 4] = [
        |world| world.write_password("another-password"),
        |world| {
            let id = world.names().client_service();
            world.objects.remove(&id);
        },
        |world| {
            let id = world.names().credentials_secret();
            world.objects.remove(&id);
        },
        |world| {
            world.edit(|root| root["spec"]["parameters"] = json!({"work_mem": "64MB"}));
        },
    ];
    for lack in lacks {
        let mut world = World::ready();
        pause(&mut world);
        lack(&mut world);
        world.settle();
        for _ in 0..5 {
            world.advance(700);
            world.settle();
        }
        let (status, reason, message) = world.condition("Ready");
        assert_eq!(status, "False");
        assert_ne!(world.phase(), "Failed", "{reason}: {message}");
        assert!(!message.contains("being created"), "{message}");
        assert!(message.contains("paused"), "{reason}: {message}");
        assert!(world.writes.iter().all(|w| w.starts_with("status")), "{:?}", world.writes);
        resume(&mut world);
        world.settle_rolling();
        assert_eq!(world.phase(), "Ready");
    }
}

/// Only what was really taken back counts towards a fight: not while paused, and not what the API
/// server refused.
#[test]
fn an_edit_that_stands_is_no_revert() {
    let refusal = || phased::Trouble {
        fate: phased::fact::Fate::UserMustAct,
        reason: "Forbidden".to_owned(),
        message: "no".to_owned(),
    };
    for refused in [false, true] {
        let mut world = World::ready();
        let id = world.names().client_service();
        if refused {
            world.refuses.insert(id.clone(), refusal());
        } else {
            pause(&mut world);
        }
        world.meddle(&id, |s| s["spec"]["ports"][0]["targetPort"] = json!(1234));
        for _ in 0..5 {
            let plan = world.pass();
            assert!(plan.events.iter().all(|e| e.reason != "EditReverted"), "{:?}", plan.events);
            world.advance(10);
        }
        assert!(world.root["status"].get("reverts").is_none(), "{}", world.root["status"]);
        world.refuses.clear();
        resume(&mut world);
        world.settle();
        assert_eq!(world.root["status"]["reverts"]["count"], 1);
    }
}
