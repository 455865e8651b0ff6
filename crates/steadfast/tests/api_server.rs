//! An API server that is away for long, behind in one kind, older than we are, or takes nothing so
//! large; and many Databases at once (fault catalogue, ids in the names).
//!
//! Everything here runs under virtual time.

mod support;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sim::faults::{Effect, Match, Often, Rule};
use support::logs::Logs;
use support::{Bench, LONG, NAME, OPERATOR, TEST_DB, is_ready, login, rules, simulate};

const MINUTE: Duration = Duration::from_secs(60);

fn add(bench: &Bench, when: Match, often: Often, effect: Effect) -> usize {
    let rule = Rule::new(when.by(OPERATOR), often, effect);
    bench.world.cluster.with(|core| core.faults.add(rule))
}

/// How many requests of the operator hold these words, in the form `verb path`.
fn requests(bench: &Bench, words: &[&str]) -> usize {
    bench.world.cluster.with(|core| {
        let ours =
            core.faults.log().iter().filter(|e| core.faults.client_name(e.client) == OPERATOR);
        let line = |e: &sim::faults::Entry| format!("{} {}", e.verb, e.path);
        ours.map(line).filter(|line| words.iter().all(|word| line.contains(word))).count()
    })
}

#[test]
fn g_10_views_of_different_age_break_no_rule() {
    let kinds = [
        ("database.example.com", "databases"),
        ("apps", "statefulsets"),
        ("", "pods"),
        ("", "persistentvolumeclaims"),
        ("", "secrets"),
        ("", "configmaps"),
        ("", "services"),
    ];
    for (group, plural) in kinds {
        simulate(move || async move {
            let bench = Bench::new(200);
            rules::install(&bench.world);
            let late = Effect::DelayEvents(Duration::from_secs(20));
            let watches = Match::verbs(&["watch"]).on(group, plural);
            let late = add(&bench, watches, Often::Always, late);
            let _operator = bench.operator();
            bench.apply(TEST_DB);
            assert!(bench.ready(NAME, 2 * LONG).await, "{plural}: {}", bench.says(NAME));
            login::write_rows(&bench.world).await;
            bench.edit(|d| d["spec"]["parameters"] = json!({"max_connections": "60"}));
            bench.world.delete("Pod", "default", "test-db-0").expect("deleted");
            bench.world.delete("Service", "default", NAME).expect("deleted");
            tokio::time::sleep(2 * MINUTE).await;
            assert!(bench.ready(NAME, 2 * LONG).await, "{plural}: {}", bench.says(NAME));
            assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS), "{plural}");
            assert!(bench.world.cluster.with(|c| c.faults.fired(late)) > 0, "{plural}: none late");
            let broken = bench.world.violations();
            assert!(broken.is_empty(), "{plural}: {broken:#?}");
            bench.world.delete("Database", "default", NAME).expect("deleted");
            let gone = bench.until(LONG, |_| bench.database(NAME).is_none());
            assert!(gone.await, "{plural}: it does not go");
        });
    }
}

#[test]
fn g_23_an_hour_without_an_api_server_ends_no_retry() {
    for effect in
        [Effect::Respond { code: 503, retry_after: None }, Effect::Timeout(Duration::from_secs(10))]
    {
        simulate(move || async move {
            let (bench, operator) = Bench::with_test_db(202).await;
            bench.apply(&TEST_DB.replace("name: test-db", "name: young"));
            let away = add(&bench, Match::any(), Often::Always, effect.clone());
            bench.world.cluster.cut_watches();
            tokio::time::sleep(5 * MINUTE).await;
            bench.edit(|d| d["spec"]["parameters"] = json!({"work_mem": "8MB"}));
            let before = requests(&bench, &[]);
            tokio::time::sleep(55 * MINUTE).await;
            // Seven watches, two Databases, each once a minute or so.
            let asked = requests(&bench, &[]) - before;
            assert!((200..2000).contains(&asked), "{effect:?}: {asked} requests in 55 minutes");
            bench.world.cluster.with(|core| core.faults.remove(away));
            assert!(bench.ready(NAME, 3 * MINUTE).await, "{effect:?}: {}", bench.says(NAME));
            assert!(bench.ready("young", LONG).await, "{effect:?}: {}", bench.says("young"));
            assert!(!operator.ended());
        });
    }
}

#[test]
fn g_28_a_field_that_the_server_drops_is_told_once_and_not_sent_again() {
    simulate(|| async {
        let bench = Bench::new(203);
        rules::install(&bench.world);
        bench.world.cluster.with(|core| {
            core.admission.push(Arc::new(|_, _, kind, object| {
                let pod = object.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut);
                if let (Some(pod), "StatefulSet") = (pod, kind.kind.as_str()) {
                    pod.remove("automountServiceAccountToken");
                    pod.insert("terminationGracePeriodSeconds".to_owned(), json!(60));
                }
                Ok(())
            }));
        });
        let operator = bench.operator();
        bench.apply(TEST_DB);
        bench.settle(NAME).await;
        tokio::time::sleep(MINUTE).await;
        let writes = operator.handle.writes();
        tokio::time::sleep(60 * MINUTE).await;
        assert_eq!(operator.handle.writes(), writes, "{:#?}", bench.writes());
        let events = bench.world.events("default", NAME);
        let told = events.iter().filter(|(reason, _)| reason == "FieldNotKept").count();
        assert_eq!(told, 1, "{events:?}");
        assert!(operator.metrics.text().contains(r#"not_kept_total{kind="StatefulSet"}"#));
        // What somebody changes beside it is still taken back.
        let changed = bench.world.edit("StatefulSet", "default", NAME, |set| {
            set["spec"]["template"]["spec"]["enableServiceLinks"] = json!(true);
        });
        changed.expect("edited");
        let restored = bench.until(MINUTE, |world| {
            let set = world.get("StatefulSet", "default", NAME).unwrap_or_default();
            set["spec"]["template"]["spec"]["enableServiceLinks"] == false
        });
        assert!(restored.await, "taken back");
    });
}

/// Annotations of the pods of this many bytes in all.
fn bulk(bytes: usize) -> Value {
    let one = 32 * 1024;
    let entries = (0..bytes.div_ceil(one)).map(|n| (format!("example.com/n{n}"), "x".repeat(one)));
    json!({"annotations": entries.map(|(k, v)| (k, json!(v))).collect::<serde_json::Map<_, _>>()})
}

#[test]
fn g_69_a_child_that_grows_too_large_is_refused_in_words_and_without_haste() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(204).await;
        login::write_rows(&bench.world).await;
        let pod = bench.uid("Pod", "test-db-0");
        bench.edit(|d| d["spec"]["podTemplate"] = bulk(512 * 1024));
        let words = ["WriteRefused", "annotations", "262144"];
        bench.told(NAME, &words, Duration::from_secs(5)).await;
        let before = requests(&bench, &[]);
        tokio::time::sleep(10 * MINUTE).await;
        let asked = requests(&bench, &[]) - before;
        assert!(asked < 150, "{asked} requests in ten minutes");
        assert_eq!(bench.uid("Pod", "test-db-0"), pod, "the server is left alone");
        let stored = bench.database(NAME).expect("it exists");
        let status = stored["status"].to_string().len();
        assert!(status < 100_000, "the status grew to {status} bytes");
        bench.edit(|d| d["spec"]["podTemplate"] = bulk(64 * 1024));
        assert!(bench.ready(NAME, LONG).await, "{}", bench.says(NAME));
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
    });
}

#[test]
fn g_69_a_resource_that_has_no_room_for_its_status_is_told_by_an_event() {
    simulate(|| async {
        let bench = Bench::new(205);
        bench.apply(TEST_DB);
        let limit = bench.database(NAME).expect("it exists").to_string().len() + 100;
        bench.world.cluster.with(|core| {
            core.admission.push(Arc::new(move |_, _, kind, object| {
                let mut bare = object.clone();
                bare["metadata"]["managedFields"] = Value::Null;
                if kind.kind != "Database" || bare.to_string().len() <= limit {
                    return Ok(());
                }
                Err(sim::Failure::new(500, "", "etcdserver: request is too large"))
            }));
        });
        let operator = bench.operator();
        bench.apply(&TEST_DB.replace("name: test-db", "name: a"));
        tokio::time::sleep(30 * MINUTE).await;
        let writes = requests(&bench, &["patch", "/test-db"]);
        assert!((10..200).contains(&writes), "{writes} writes in half an hour");
        let events = bench.world.events("default", NAME);
        let told: Vec<_> = events.iter().filter(|(reason, _)| reason == "StatusRefused").collect();
        assert!((1..=2).contains(&told.len()), "{events:?}");
        assert!(told[0].1.contains("too large"), "{told:?}");
        assert!(!operator.ended());
        bench.world.cluster.with(|core| core.admission.pop());
        assert!(bench.ready(NAME, LONG).await, "{}", bench.says(NAME));
    });
}

#[test]
fn pg_41_a_phase_that_the_definition_does_not_know_is_told_and_healed_by_a_newer_one() {
    simulate(|| async {
        let (logs, _guard) = Logs::capture(tracing::Level::WARN);
        let (bench, operator) = Bench::with_test_db(206).await;
        for mut crd in steadfast::manifests::crds().expect("serialisable") {
            let phases = crd
                .pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/status")
                .and_then(|status| status["properties"]["phase"]["enum"].as_array_mut());
            phases.expect("the phases are listed").retain(|phase| phase != "Verifying");
            bench.apply(&crd.to_string());
        }
        bench.apply(&TEST_DB.replace("name: test-db", "name: young"));
        tokio::time::sleep(10 * MINUTE).await;
        assert_eq!(bench.phase("young"), "Deploying", "it goes as far as it is known");
        assert!(!logs.lines_with("status could not be written").is_empty());
        let counted = r#"writes_total{verb="apply status",kind="Database",outcome="error"}"#;
        assert!(operator.metrics.text().contains(counted));
        let events = bench.world.events("default", "young");
        let told: Vec<_> = events.iter().filter(|(reason, _)| reason == "StatusRefused").collect();
        assert!((1..=2).contains(&told.len()), "{events:?}");
        assert!(told[0].1.contains("Verifying"), "{told:?}");
        let tries = requests(&bench, &["patch", "/young/status"]);
        assert!((10..=60).contains(&tries), "{tries} status writes in ten minutes");
        // Another resource is served, and nobody waits for a restart.
        bench.world.delete("Service", "default", NAME).expect("deleted");
        assert!(bench.until(MINUTE / 6, |_| !bench.uid("Service", NAME).is_empty()).await);
        for crd in steadfast::manifests::crds().expect("serialisable") {
            bench.apply(&crd.to_string());
        }
        assert!(bench.ready("young", MINUTE).await, "{}", bench.says("young"));
    });
}

#[test]
fn g_65_databases_side_by_side_are_all_served_at_a_bounded_price() {
    simulate(|| async {
        const MANY: usize = 20;
        let bench = Bench::new(207);
        bench.world.cluster.with(|core| {
            let key = sim::Key::new("", "nodes", "", "node-1");
            let mut node = core.store.get(&key).cloned().expect("there is a node");
            let room =
                json!({"cpu": "9k", "memory": "90Ti", "pods": "9k", "ephemeral-storage": "90Ti"});
            node["status"]["allocatable"] = room.clone();
            node["status"]["capacity"] = room;
            core.store.put(key, node);
        });
        let operator = bench.operator();
        for number in 0..MANY {
            bench.apply(&TEST_DB.replace("name: test-db", &format!("name: db-{number:03}")));
        }
        let ready = || {
            bench.world.cluster.with(|core| {
                let all = core.store.list("database.example.com", "databases", Some("default"));
                all.filter(|(_, database)| is_ready(database)).count()
            })
        };
        let began = tokio::time::Instant::now();
        while ready() < MANY && began.elapsed() < 30 * MINUTE {
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(ready(), MANY);
        let asked = requests(&bench, &[]) / MANY;
        assert!(asked <= 120, "{asked} requests a Database");
        nobody_starves(&bench, MANY);
        // The operator starts again on all of them: nothing is written.
        operator.kill();
        let operator = bench.operator();
        tokio::time::sleep(2 * MINUTE).await;
        assert_eq!(operator.handle.writes(), 0, "settled Databases cost no write");
        let asked = requests(&bench, &[]);
        tokio::time::sleep(11 * MINUTE).await;
        let asked = (requests(&bench, &[]) - asked) / MANY;
        assert!(asked <= 45, "{asked} requests a settled Database in eleven minutes");
        assert_eq!((operator.handle.writes(), ready()), (0, MANY));
    });
}

/// Each Database gets its first status before any gets its fifth.
fn nobody_starves(bench: &Bench, many: usize) {
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    bench.world.cluster.with(|core| {
        let statuses = core.faults.write_log().filter(|e| e.path.contains("/status"));
        for entry in statuses {
            let name = entry.path.split('/').rev().nth(1).unwrap_or_default().to_owned();
            let count = seen.entry(name).or_default();
            *count += 1;
            if *count == 5 {
                break;
            }
        }
    });
    assert_eq!(seen.len(), many, "served before any was served five times");
}
