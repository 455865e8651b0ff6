//! Parts of a Ready Database are deleted or edited by others: repaired, and only that part is
//! written (plus the status); what others declared and we do not stays (fault catalogue PG-07,
//! PG-08, PG-42, PG-49, G-46, G-58; field case C-09).
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::{Bench, NAME, Operator, login, rules, simulate, text};

const SOON: Duration = Duration::from_secs(30);

/// What operators wrote since `writes` had been made, without status writes, sorted and once each.
fn written(bench: &Bench, before: usize) -> Vec<String> {
    let mut lines: Vec<String> = bench.writes().split_off(before);
    lines.retain(|line| !line.ends_with(&format!("databases/{NAME}/status")));
    lines.sort();
    lines.dedup();
    lines
}

/// Lets Events and the passes after the last write go by.
async fn calm() {
    tokio::time::sleep(Duration::from_secs(20)).await;
}

#[test]
fn pg_42_g_46_a_deleted_child_comes_back_and_only_it_is_written() {
    let cases = [
        ("Service", NAME, "services/test-db"),
        ("Service", "test-db-headless", "services/test-db-headless"),
        ("ConfigMap", "test-db-config", "configmaps/test-db-config"),
        ("StatefulSet", NAME, "statefulsets/test-db"),
    ];
    for (kind, name, path) in cases {
        simulate(move || async move {
            let (bench, operator) = Bench::with_test_db(31).await;
            rules::install(&bench.world);
            login::write_rows(&bench.world).await;
            calm().await;
            let (uid, before) = (bench.uid(kind, name), bench.writes().len());
            bench.world.delete(kind, "default", name).expect("deleted");
            let back = bench.until(SOON, |_| {
                let now = bench.uid(kind, name);
                !now.is_empty() && now != uid
            });
            assert!(back.await, "{kind} {name} did not come back");
            bench.settle(NAME).await;
            calm().await;
            // Its pod went with the set, and the new one is told its part.
            let role = (kind == "StatefulSet").then(|| "patch pods/test-db-0".to_owned());
            let wanted: Vec<String> = role.into_iter().chain([format!("patch {path}")]).collect();
            assert_eq!(written(&bench, before), wanted, "{kind} {name}");
            bench.settle(NAME).await;
            assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
            rules::hold(&bench.world);
            operator.kill();
        });
    }
}

#[test]
fn pg_42_an_orphaned_pod_is_taken_over_without_a_restart() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(32).await;
        calm().await;
        let pod = bench.uid("Pod", "test-db-0");
        let orphan = sim::DeleteOptions {
            propagation: Some(sim::Propagation::Orphan),
            ..sim::DeleteOptions::default()
        };
        let set = bench.uid("StatefulSet", NAME);
        bench.world.delete_with("StatefulSet", "default", NAME, orphan).expect("deleted");
        let back = bench.until(SOON, |_| {
            ![String::new(), set.clone()].contains(&bench.uid("StatefulSet", NAME))
        });
        assert!(back.await, "the set did not come back");
        bench.settle(NAME).await;
        calm().await;
        assert_eq!(bench.uid("Pod", "test-db-0"), pod, "the pod was restarted");
    });
}

/// Edits a child as another manager; then the declared value is back, the undeclared one stays, only
/// this child was written, and the Event names the manager.
async fn edited(bench: &Bench, (kind, name, path): (&str, &str, &str), yaml: &str, field: &str) {
    calm().await;
    let live = bench.world.get(kind, "default", name).expect("it exists");
    let declared = live.pointer(field).cloned();
    let before = bench.writes().len();
    bench.world.apply_as("meddler", yaml).expect("forced");
    let changed = bench.world.get(kind, "default", name).expect("it exists");
    assert_ne!(changed.pointer(field).cloned(), declared, "{kind} {name}: the edit took effect");
    let mended = bench.until(SOON, |world| {
        world.get(kind, "default", name).is_some_and(|now| now.pointer(field).cloned() == declared)
    });
    assert!(mended.await, "{kind} {name}: {field} was not taken back");
    bench.settle(NAME).await;
    calm().await;
    assert_eq!(written(bench, before), [format!("patch {path}")], "{kind} {name}");
    let now = bench.world.get(kind, "default", name).expect("it exists");
    assert_eq!(text(&now, "/metadata/annotations/example.com~1note"), "mine", "{kind} {name}");
    let events = bench.world.events("default", NAME);
    let named = events.iter().any(|(reason, message)| {
        reason == "EditReverted" && message.contains("meddler") && message.contains(name)
    });
    assert!(named, "{kind} {name}: {events:#?}");
}

#[test]
fn g_58_an_edited_child_is_taken_back_and_the_event_names_the_manager() {
    let cases = [
        (
            ("Service", NAME, "services/test-db"),
            "{apiVersion: v1, kind: Service, metadata: {name: test-db, annotations: {example.com/note: mine}}, spec: {selector: {app.kubernetes.io/instance: other}}}",
            "/spec/selector",
        ),
        (
            ("ConfigMap", "test-db-config", "configmaps/test-db-config"),
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: test-db-config, annotations: {example.com/note: mine}}, data: {postgresql.conf: 'fsync = off'}}",
            "/data/postgresql.conf",
        ),
        (
            ("StatefulSet", NAME, "statefulsets/test-db"),
            "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: test-db, annotations: {example.com/note: mine}}, spec: {replicas: 3}}",
            "/spec/replicas",
        ),
        // Another major version, which the spec would be refused for, is no more than another edit.
        (
            ("StatefulSet", NAME, "statefulsets/test-db"),
            "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: test-db, annotations: {example.com/note: mine}}, spec: {template: {spec: {containers: [{name: postgres, image: 'postgres:17'}]}}}}",
            "/spec/template/spec/containers/0/image",
        ),
        // What was written down about the data is no other hand's to change.
        (
            ("StatefulSet", NAME, "statefulsets/test-db"),
            "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: test-db, annotations: {example.com/note: mine, steadfast.dev/database: other}}}",
            "/metadata/annotations/steadfast.dev~1database",
        ),
        (
            ("ConfigMap", "test-db-config", "configmaps/test-db-config"),
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: test-db-config, annotations: {example.com/note: mine}}, data: {system-identifier: '7999999999999999999'}}",
            "/data/system-identifier",
        ),
    ];
    for (at, yaml, field) in cases {
        simulate(move || async move {
            let (bench, _operator) = Bench::with_test_db(33).await;
            login::write_rows(&bench.world).await;
            edited(&bench, at, yaml, field).await;
            assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
        });
    }
}

async fn ready_with_rows(seed: u64) -> (Bench, Operator, String) {
    let (bench, operator) = Bench::with_test_db(seed).await;
    login::write_rows(&bench.world).await;
    calm().await;
    let pod = bench.uid("Pod", "test-db-0");
    (bench, operator, pod)
}

fn edit_secret(bench: &Bench, change: impl FnOnce(&mut Value)) {
    bench
        .world
        .edit("Secret", "default", "test-db-credentials", change)
        .expect("the Secret is edited");
}

/// Waits until the application logs in with this password.
async fn in_force(bench: &Bench, password: &str) {
    let began = tokio::time::Instant::now();
    while login::login(&bench.world, NAME, ("admin", password, "mydb")).await.is_err() {
        assert!(began.elapsed() < SOON, "not in force: {}", bench.says(NAME));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn pg_07_an_edited_password_is_put_in_force_without_a_restart() {
    simulate(|| async {
        let (bench, operator, pod) = ready_with_rows(34).await;
        let old = login::secret(&bench.world, "test-db-credentials", "password");
        for password in ["first edit", "second edit: a,b=c:d/e?f#g[h]@i%j+k l'm\"n\\o\u{e9}"] {
            edit_secret(&bench, |secret| {
                secret["data"]["password"] = json!(login::encoded(password));
            });
            in_force(&bench, password).await;
            bench.settle(NAME).await;
            let uri = login::secret(&bench.world, "test-db-credentials", "uri");
            let encoded = uri.trim_start_matches("postgresql://admin:").split('@').next();
            let decoded = percent_encoding_decoded(encoded.unwrap_or_default());
            assert_eq!(decoded, password, "the uri follows: {uri}");
            let jdbc = login::secret(&bench.world, "test-db-credentials", "jdbc-uri");
            assert!(jdbc.ends_with(encoded.unwrap_or_default()), "{jdbc}");
        }
        let refused = login::login(&bench.world, NAME, ("admin", &old, "mydb")).await;
        assert!(refused.is_err_and(|said| said.starts_with("28P01")), "the old one still works");
        assert_eq!(bench.uid("Pod", "test-db-0"), pod, "the pod was restarted");
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
        assert_eq!(operator.tap.said().iter().filter(|s| s.starts_with("ALTER ROLE")).count(), 2);
    });
}

fn percent_encoding_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits: String = rest.by_ref().take(2).map(char::from).collect();
            bytes.push(u8::from_str_radix(&digits, 16).expect("two hexadecimal digits"));
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).expect("text")
}

#[test]
fn pg_08_a_deleted_secret_is_replaced_once_and_the_new_password_is_in_force() {
    simulate(|| async {
        let (bench, operator, pod) = ready_with_rows(35).await;
        let old = login::secret(&bench.world, "test-db-credentials", "password");
        let before = bench.writes().len();
        bench.world.delete("Secret", "default", "test-db-credentials").expect("deleted");
        let made = bench.until(SOON, |world| {
            !login::secret(world, "test-db-credentials", "password").is_empty()
        });
        assert!(made.await, "no new Secret");
        let password = login::secret(&bench.world, "test-db-credentials", "password");
        assert_ne!(password, old);
        in_force(&bench, &password).await;
        bench.settle(NAME).await;
        calm().await;
        assert_eq!(login::secret(&bench.world, "test-db-credentials", "password"), password);
        assert_eq!(written(&bench, before), ["create secrets"]);
        assert_eq!(bench.uid("Pod", "test-db-0"), pod, "the pod was restarted");
        assert_eq!(operator.tap.said().last().map(String::as_str), Some("ALTER ROLE"));
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
    });
}

#[test]
fn pg_49_a_missing_or_empty_password_never_clears_the_roles_password() {
    simulate(|| async {
        let (bench, operator, pod) = ready_with_rows(36).await;
        let old = login::secret(&bench.world, "test-db-credentials", "password");
        edit_secret(&bench, |secret| {
            secret["data"].as_object_mut().expect("data").remove("password");
        });
        bench.edit(|database| database["spec"]["parameters"] = json!({"work_mem": "8MB"}));
        bench.told(NAME, &["PasswordMissing", "password"], SOON).await;
        edit_secret(&bench, |secret| secret["data"]["password"] = json!(""));
        bench.told(NAME, &["PasswordMissing", "empty"], SOON).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        let statements = operator.tap.said();
        assert!(!statements.iter().any(|s| s.starts_with("ALTER ROLE")), "{statements:?}");
        let session = login::login(&bench.world, NAME, ("admin", &old, "mydb")).await;
        assert!(session.is_ok(), "the old password is not in force any more");
        edit_secret(&bench, |secret| secret["data"]["password"] = json!(login::encoded(&old)));
        bench.settle(NAME).await;
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
        let _ = pod;
    });
}

#[test]
fn c_09_a_password_that_ends_with_a_line_feed_is_refused_and_the_old_one_stays() {
    simulate(|| async {
        let (bench, operator, pod) = ready_with_rows(37).await;
        let old = login::secret(&bench.world, "test-db-credentials", "password");
        edit_secret(&bench, |secret| secret["data"]["password"] = json!("UzNjcmV0IQo="));
        bench.told(NAME, &["False", "PasswordUnusable", "ends with a line feed"], SOON).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(!operator.tap.said().iter().any(|s| s.starts_with("ALTER ROLE")));
        assert!(login::login(&bench.world, NAME, ("admin", &old, "mydb")).await.is_ok());
        edit_secret(&bench, |secret| secret["data"]["password"] = json!(login::encoded("S3cret!")));
        in_force(&bench, "S3cret!").await;
        bench.settle(NAME).await;
        assert_eq!(bench.uid("Pod", "test-db-0"), pod, "the pod was restarted");
    });
}

#[test]
fn g_58_a_rollout_restart_by_kubectl_is_not_undone() {
    simulate(|| async {
        let (bench, _operator, pod) = ready_with_rows(38).await;
        let restarted = bench.world.edit("StatefulSet", "default", NAME, |set| {
            set["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] =
                json!("2026-01-01T00:00:00Z");
        });
        restarted.expect("edited");
        let rolled = bench.until(Duration::from_secs(120), |_| {
            ![String::new(), pod.clone()].contains(&bench.uid("Pod", "test-db-0"))
        });
        assert!(rolled.await, "the pod was not restarted");
        bench.settle(NAME).await;
        calm().await;
        let pod = bench.uid("Pod", "test-db-0");
        tokio::time::sleep(Duration::from_secs(900)).await;
        assert_eq!(bench.uid("Pod", "test-db-0"), pod, "restarted once more");
        let set = bench.world.get("StatefulSet", "default", NAME).expect("it exists");
        let kept =
            set.pointer("/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt");
        assert!(kept.is_some(), "the mark was taken away");
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
    });
}

#[test]
fn g_57_a_status_that_was_overwritten_by_hand_is_rebuilt_from_facts() {
    simulate(|| async {
        let (bench, operator, pod) = ready_with_rows(39).await;
        let identifier =
            bench.database(NAME).expect("it exists")["status"]["systemIdentifier"].clone();
        let actor = sim::Actor::new("kubernetes-admin", "kubectl-edit");
        bench.world.cluster.with(|core| {
            let kind = core.kinds.all().find(|k| k.kind == "Database").cloned().expect("served");
            let key = kind.key("default", NAME);
            let mut database = core.store.get(&key).cloned().expect("it exists");
            database["status"] = json!({"phase": "Pending", "ready": false, "readyReplicas": 7});
            let sub = Some(sim::Sub::Status);
            core.update(&actor, &kind, &key, database, sub, &sim::Options::default())
                .expect("the status is overwritten");
        });
        bench.settle(NAME).await;
        calm().await;
        let database = bench.database(NAME).expect("it exists");
        assert_eq!(database["status"]["systemIdentifier"], identifier);
        assert_eq!(database["status"]["readyReplicas"], 1);
        assert_eq!(bench.uid("Pod", "test-db-0"), pod, "the pod was restarted");
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
        assert!(!operator.ended());
    });
}

/// What a Secret says besides its password is ours to say: an edit is taken back and told, and the
/// password stays.
#[test]
fn g_58_an_edited_key_that_follows_is_taken_back_and_told() {
    let keys = [
        ("test-db-credentials", vec!["database", "host", "jdbc-uri", "port", "uri", "username"]),
        ("test-db-superuser", vec!["username"]),
        ("test-db-replication", vec!["username"]),
    ];
    simulate(move || async move {
        let (bench, _operator, pod) = ready_with_rows(40).await;
        for (name, key) in
            keys.iter().flat_map(|(name, keys)| keys.iter().map(move |k| (*name, *k)))
        {
            for value in [Some("c29tZWJvZHk="), None] {
                // Beyond the pause after which reverts are forgotten, so that none is a fight.
                tokio::time::sleep(Duration::from_secs(700)).await;
                let data = || bench.world.get("Secret", "default", name).map(|s| s["data"].clone());
                let (before, writes) = (data(), bench.writes().len());
                let told = bench.world.events("default", NAME).len();
                let edited = bench.world.edit("Secret", "default", name, |secret| {
                    let data = secret["data"].as_object_mut().expect("data");
                    match value {
                        Some(value) => data.insert(key.to_owned(), json!(value)),
                        None => data.remove(key),
                    };
                });
                edited.expect("edited");
                assert!(bench.until(SOON, |_| data() == before).await, "{name} {key} {value:?}");
                calm().await;
                assert_eq!(written(&bench, writes), [format!("patch secrets/{name}")]);
                let events = bench.world.events("default", NAME).split_off(told);
                let named = events.iter().any(|(reason, message)| {
                    reason == "EditReverted" && message.contains(name) && message.contains(key)
                });
                assert!(named, "{name} {key} {value:?}: {events:#?}");
            }
        }
        bench.settle(NAME).await;
        assert_eq!(bench.uid("Pod", "test-db-0"), pod, "the pod was restarted");
    });
}
