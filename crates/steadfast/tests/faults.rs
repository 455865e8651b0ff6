//! Faults of the API, of watches, of the server and of its surroundings, one at a time and all at
//! once (fault catalogue, ids in the names).
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use serde_json::json;
use sim::external::Dialogue;
use sim::faults::{Effect, Match, Often, Rule};
use support::{
    Bench, LONG, NAME, OPERATOR, TEST_DB, condition, login, rules, simulate, storm, text,
};

const MINUTE: Duration = Duration::from_secs(60);

fn add(bench: &Bench, rules: Vec<Rule>) -> Vec<usize> {
    bench.world.cluster.with(|core| rules.into_iter().map(|rule| core.faults.add(rule)).collect())
}

fn clear(bench: &Bench) {
    bench.world.cluster.with(|core| core.faults.clear());
}

fn respond(code: u16) -> Effect {
    Effect::Respond { code, retry_after: None }
}

fn all() -> Match {
    Match::any().by(OPERATOR)
}

fn writes() -> Match {
    Match::writes().by(OPERATOR)
}

fn watches() -> Match {
    Match::verbs(&["watch"]).by(OPERATOR)
}

/// Brings a Database up under rules that last ten minutes; then all settles, one password was made
/// for each Secret, and no volume was lost.
fn survive(name: &'static str, rules: fn() -> Vec<Rule>) {
    simulate(move || async move {
        let bench = Bench::new(91);
        rules::install(&bench.world);
        let operator = bench.operator();
        let ids = add(&bench, rules());
        bench.apply(TEST_DB);
        tokio::time::sleep(10 * MINUTE).await;
        let fired: u64 =
            bench.world.cluster.with(|c| ids.iter().map(|id| c.faults.fired(*id)).sum());
        assert!(fired > 0, "{name}: nothing was hit");
        clear(&bench);
        assert!(bench.ready(NAME, 3 * LONG).await, "{name}: {}", bench.says(NAME));
        login::write_rows(&bench.world).await;
        let broken = bench.world.violations();
        assert!(broken.is_empty(), "{name}: {broken:#?}");
        assert!(!operator.ended(), "{name}");
        tokio::time::sleep(MINUTE).await;
        let writes = operator.handle.writes();
        tokio::time::sleep(30 * MINUTE).await;
        assert_eq!(operator.handle.writes(), writes, "{name}: not quiet afterwards");
        println!("{name}: hit {fired} requests");
    });
}

#[test]
fn g_20_conflicts_are_rebuilt_and_end() {
    survive("every 2nd write conflicts", || {
        vec![Rule::new(writes(), Often::Every(2), respond(409))]
    });
    survive("each write conflicts", || vec![Rule::new(writes(), Often::Always, respond(409))]);
}

#[test]
fn g_22_server_errors_and_slowness_are_retried() {
    survive("500, 503, 504 by chance", || {
        [500, 503, 504].map(|c| Rule::new(all(), Often::Chance(0.2), respond(c))).into()
    });
    survive("30 s pauses", || {
        vec![Rule::new(all(), Often::Every(5), Effect::Slow(Duration::from_secs(31)))]
    });
}

#[test]
fn g_34_an_api_server_that_is_away_is_waited_for() {
    survive("503 for everything", || vec![Rule::new(all(), Often::Always, respond(503))]);
}

#[test]
fn g_12_g_14_g_15_bad_watches_lose_nothing() {
    survive("watches cut after each event", || {
        vec![Rule::new(watches(), Often::Always, Effect::CutWatch(1))]
    });
    survive("410 on two of three watches", || {
        vec![Rule::new(watches(), Often::Chance(0.66), Effect::Gone)]
    });
    survive("doubled and late events", || {
        vec![
            Rule::new(watches(), Often::Always, Effect::DuplicateEvents),
            Rule::new(watches(), Often::Always, Effect::DelayEvents(Duration::from_secs(2))),
        ]
    });
}

#[test]
fn g_08_pg_29_pg_28_own_writes_that_are_not_yet_seen_are_not_made_twice() {
    simulate(|| async {
        let bench = Bench::new(92);
        rules::install(&bench.world);
        let _operator = bench.operator();
        add(
            &bench,
            vec![Rule::new(watches(), Often::Always, Effect::DelayEvents(Duration::from_secs(3)))],
        );
        bench.apply(TEST_DB);
        bench.settle(NAME).await;
        let writes = bench.writes();
        let secrets = writes.iter().filter(|w| *w == "create secrets").count();
        assert_eq!(secrets, 3, "{writes:#?}");
        let refused: Vec<String> = bench.world.cluster.with(|core| {
            let ours =
                core.faults.write_log().filter(|e| core.faults.client_name(e.client) == OPERATOR);
            ours.filter(|e| e.code >= 400).map(|e| format!("{} {}", e.path, e.code)).collect()
        });
        assert!(refused.is_empty(), "conflicts with itself: {refused:#?}");
        rules::hold(&bench.world);
    });
}

#[test]
fn g_07_g_09_stale_reads_delete_and_make_nothing_twice() {
    survive("reads 5 versions old", || {
        vec![Rule::new(
            Match::verbs(&["get", "list"]).by(OPERATOR),
            Often::Chance(0.5),
            Effect::Stale(5),
        )]
    });
}

#[test]
fn g_21_no_retry_earlier_than_asked_for() {
    simulate(|| async {
        let bench = Bench::new(93);
        let _operator = bench.operator();
        let asked = Effect::Respond { code: 429, retry_after: Some(30) };
        let when = writes().on("", "secrets");
        add(&bench, vec![Rule::new(when, Often::First(3), asked)]);
        bench.apply(TEST_DB);
        assert!(bench.ready(NAME, 2 * LONG).await, "{}", bench.says(NAME));
        let times: Vec<i64> = bench.world.cluster.with(|core| {
            let hits = core.faults.write_log().filter(|e| e.path.contains("/secrets"));
            hits.take(4).map(|e| e.micros / 1_000_000).collect()
        });
        assert!(times.windows(2).all(|t| t[1] - t[0] >= 30), "{times:?}");
    });
}

#[test]
fn g_24_a_missing_permission_is_named_and_the_rest_goes_on() {
    let kinds = [("apps", "statefulsets"), ("", "services"), ("", "configmaps"), ("", "secrets")];
    for (group, plural) in kinds {
        simulate(move || async move {
            let bench = Bench::new(94);
            let operator = bench.operator();
            let effect = Effect::Deny { message: "User cannot do that".to_owned() };
            add(&bench, vec![Rule::new(writes().on(group, plural), Often::Always, effect)]);
            bench.apply(TEST_DB);
            bench.told(NAME, &["WriteRefused"], MINUTE).await;
            let says = bench.says(NAME).to_lowercase();
            assert!(says.contains(plural.trim_end_matches('s')), "{plural}: {says}");
            tokio::time::sleep(10 * MINUTE).await;
            assert!(!operator.ended());
            clear(&bench);
            assert!(bench.ready(NAME, LONG).await, "{plural}: {}", bench.says(NAME));
        });
    }
}

#[test]
fn pg_05_g_82_a_failed_read_is_not_absence() {
    for effect in [
        respond(500),
        Effect::Timeout(Duration::from_secs(10)),
        Effect::Deny { message: "no".to_owned() },
    ] {
        simulate(move || async move {
            let (bench, _operator) = Bench::with_test_db(95).await;
            rules::install(&bench.world);
            let pod = bench.uid("Pod", "test-db-0");
            let password = login::secret(&bench.world, "test-db-credentials", "password");
            let reads = Match::verbs(&["get", "list", "watch"]).on("", "secrets").by(OPERATOR);
            add(&bench, vec![Rule::new(reads, Often::Always, effect.clone())]);
            bench.world.cluster.cut_watches();
            for round in 0..5 {
                bench.edit(|d| {
                    d["metadata"]["annotations"] = json!({"example.com/round": round.to_string()})
                });
                tokio::time::sleep(MINUTE).await;
            }
            let secrets = bench.writes().iter().filter(|w| w.contains("secrets")).count();
            assert_eq!(secrets, 3, "{effect:?}: a Secret was written: {:#?}", bench.writes());
            assert_eq!(bench.uid("Pod", "test-db-0"), pod, "{effect:?}: the pod was restarted");
            clear(&bench);
            assert!(bench.ready(NAME, 10 * MINUTE).await, "{effect:?}: {}", bench.says(NAME));
            assert_eq!(login::secret(&bench.world, "test-db-credentials", "password"), password);
            rules::hold(&bench.world);
        });
    }
}

#[test]
fn pg_27_conditions_of_others_are_kept() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(96).await;
        let actor = sim::Actor::new("backup", "backup");
        bench.world.cluster.with(|core| {
            let kind = core.kinds.all().find(|k| k.kind == "Database").cloned().expect("served");
            let key = kind.key("default", NAME);
            let object = json!({
                "apiVersion": "database.example.com/v1", "kind": "Database",
                "metadata": {"name": NAME, "namespace": "default"},
                "status": {"conditions": [{
                    "type": "BackedUp", "status": "True", "reason": "Done", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }]},
            });
            let patch = sim::Patch::Apply { object, force: false };
            core.patch(
                &actor,
                &kind,
                &key,
                patch,
                Some(sim::Sub::Status),
                &sim::Options::default(),
            )
            .expect("another manager's condition");
        });
        bench.edit(|d| d["spec"]["parameters"] = json!({"work_mem": "8MB"}));
        bench.settle(NAME).await;
        tokio::time::sleep(MINUTE).await;
        assert_eq!(bench.condition(NAME, "BackedUp")["status"], "True");
        assert_eq!(bench.condition(NAME, "Ready")["status"], "True");
    });
}

#[test]
fn pg_36_a_dependency_that_misbehaves_is_bounded_and_a_running_server_outlives_it() {
    let host = "x.y.svc.cluster.local";
    let dialogues = [
        Dialogue::Refuse,
        Dialogue::Silent,
        Dialogue::Drop,
        Dialogue::Status(503),
        Dialogue::Redirect("http://x.y.svc.cluster.local:80/".to_owned()),
    ];
    for dialogue in dialogues {
        simulate(move || async move {
            let bench = Bench::new(97);
            let _operator = bench.operator();
            bench.world.model(|m| m.network.host(host, 80, dialogue.clone()));
            bench.apply(&format!(
                "{TEST_DB}  externalDependencies: [{{name: x, url: 'http://{host}/'}}]\n"
            ));
            bench.told(NAME, &["ExternalDependencyUnavailable"], MINUTE).await;
            tokio::time::sleep(5 * MINUTE).await;
            assert!(
                bench.uid("StatefulSet", NAME).is_empty(),
                "{dialogue:?}: it was not waited for"
            );
            bench.world.model(|m| m.network.host(host, 80, Dialogue::Status(204)));
            bench.settle(NAME).await;
            let pod = bench.uid("Pod", "test-db-0");
            bench.world.model(|m| m.network.host(host, 80, dialogue.clone()));
            tokio::time::sleep(20 * MINUTE).await;
            assert_eq!(
                bench.uid("Pod", "test-db-0"),
                pod,
                "{dialogue:?}: the server was taken down"
            );
            assert!(login::application(&bench.world).await.is_ok());
        });
    }
}

#[test]
fn pg_38_delays_double_to_ten_minutes_whatever_the_restarts() {
    simulate(|| async {
        let (bench, mut operator) = Bench::with_test_db(98).await;
        bench.world.disturb("default", "test-db-0", |c| c.read_only = true);
        let failed = bench.until(10 * MINUTE, |_| bench.phase(NAME) == "Failed");
        assert!(failed.await, "{}", bench.says(NAME));
        let mut attempts = Vec::new();
        for _ in 0..6 {
            let status = bench.database(NAME).expect("it exists")["status"].clone();
            let count = status["retry"]["attempts"].as_u64().expect("counted");
            let next: jiff::Timestamp = text(&status, "/retry/nextTry").parse().expect("a time");
            let now = bench.world.cluster.with(|core| core.now());
            attempts.push((count, next.duration_since(now).as_secs()));
            operator.kill();
            operator = bench.operator();
            let counted = bench.until(15 * MINUTE, |_| {
                bench.database(NAME).expect("it exists")["status"]["retry"]["attempts"] == count + 1
            });
            assert!(counted.await, "{attempts:?}: {}", bench.says(NAME));
        }
        let delays: Vec<i64> = attempts.iter().map(|(_, delay)| *delay).collect();
        for (delay, wanted) in delays.iter().zip([60, 120, 240, 480, 600, 600]) {
            assert!((wanted - 3..=wanted + 1).contains(delay), "{attempts:?}");
        }
        bench.world.disturb("default", "test-db-0", |c| c.read_only = false);
        bench.edit(|d| d["spec"]["parameters"] = json!({"work_mem": "8MB"}));
        assert!(bench.ready(NAME, MINUTE).await, "an edit starts at once: {}", bench.says(NAME));
    });
}

#[test]
fn pg_39_a_lock_is_bounded_and_told() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(99).await;
        bench.world.disturb("default", "test-db-0", |c| c.locked.insert("admin".to_owned()));
        bench
            .world
            .edit("Secret", "default", "test-db-credentials", |secret| {
                secret["data"]["password"] = json!(login::encoded("another-password"));
            })
            .expect("edited");
        bench.told(NAME, &["False"], MINUTE).await;
        bench.apply(&TEST_DB.replace("name: test-db", "name: calm"));
        assert!(bench.ready("calm", LONG).await, "another resource is held up");
        let says = bench.says(NAME);
        assert!(says.contains("lock") || says.contains("timeout"), "{says}");
        bench.world.disturb("default", "test-db-0", |c| c.locked.clear());
        assert!(bench.ready(NAME, 15 * MINUTE).await, "{}", bench.says(NAME));
        assert!(login::application(&bench.world).await.is_ok());
    });
}

#[test]
fn pg_40_pg_48_g_78_a_server_that_takes_no_writes_is_noticed_told_and_left_alone() {
    type Case = (fn(&mut sim::external::postgres::Conditions, bool), &'static str);
    let cases: [Case; 4] = [
        (|c, on| c.read_only = on, "ReadOnlyServer"),
        (|c, on| c.disk_full = on, "DiskFull"),
        (|c, on| c.silent = on, "RolloutWaiting"),
        (|c, on| c.starting = on, "RolloutWaiting"),
    ];
    for (switch, reason) in cases {
        simulate(move || async move {
            let (bench, _operator) = Bench::with_test_db(100).await;
            login::write_rows(&bench.world).await;
            let pod = bench.uid("Pod", "test-db-0");
            bench.world.disturb("default", "test-db-0", |c| switch(c, true));
            bench.told(NAME, &["False", reason], 6 * MINUTE).await;
            assert_eq!(bench.condition(NAME, "Degraded")["status"], "True");
            bench.world.disturb("default", "test-db-0", |c| switch(c, false));
            assert!(bench.ready(NAME, 20 * MINUTE).await, "{reason}: {}", bench.says(NAME));
            assert_eq!(bench.uid("Pod", "test-db-0"), pod, "{reason}: the pod was replaced");
            assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
        });
    }
}

#[test]
fn pg_40_hundreds_of_checks_leave_nothing_behind() {
    simulate(|| async {
        let (bench, operator) = Bench::with_test_db(101).await;
        login::write_rows(&bench.world).await;
        let sessions = operator.tap.sessions();
        tokio::time::sleep(MINUTE * 60 * 17).await;
        assert!(operator.tap.sessions() - sessions >= 400, "a probe and a wrong password each");
        let client = login::superuser(&bench.world).await.expect("logged in");
        let left = login::ask(
            &client,
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'steadfast'",
        )
        .await;
        assert!(left.as_deref() == Ok("0") || left.is_err(), "{left:?}");
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
    });
}

#[test]
fn g_17_a_resource_that_cannot_be_read_is_named_and_holds_nobody_up() {
    simulate(|| async {
        let bench = Bench::new(102);
        let operator = bench.operator();
        for mut crd in steadfast::manifests::crds().expect("serialisable") {
            let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            schema["properties"]["spec"] =
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            schema.as_object_mut().expect("a schema").remove("x-kubernetes-validations");
            bench.apply(&crd.to_string());
        }
        bench.apply(
            &TEST_DB.replace("name: test-db", "name: odd").replace("replicas: 1", "replicas: many"),
        );
        bench.apply(TEST_DB);
        bench.settle(NAME).await;
        bench.told("odd", &["False", "Unreadable"], MINUTE).await;
        assert!(operator.metrics.text().contains("unreadable"));
        bench.world.delete("Database", "default", "odd").expect("deleted");
        assert!(bench.until(MINUTE, |_| bench.database("odd").is_none()).await);
    });
}

#[test]
fn g_79_a_node_that_is_away_starts_no_second_server() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(103).await;
        login::write_rows(&bench.world).await;
        bench.world.model(|m| m.down.insert("node-1".to_owned()));
        tokio::time::sleep(30 * MINUTE).await;
        let deleted = bench.writes().iter().filter(|w| w.starts_with("delete")).count();
        assert_eq!(deleted, 0, "unknown is not down: {:#?}", bench.writes());
        bench.world.model(|m| m.down.clear());
        assert!(bench.ready(NAME, 20 * MINUTE).await, "{}", bench.says(NAME));
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
    });
}

#[test]
fn g_32_clock_jumps_do_no_harm() {
    for hours in [1, -1, 24] {
        simulate(move || async move {
            let (bench, operator) = Bench::with_test_db(104).await;
            rules::install(&bench.world);
            let jump = jiff::SignedDuration::from_hours(hours);
            bench.world.cluster.with(|core| core.clock.jump(jump));
            bench.edit(|d| d["spec"]["parameters"] = json!({"max_connections": "60"}));
            assert!(bench.ready(NAME, 10 * MINUTE).await, "{hours} h: {}", bench.says(NAME));
            assert!(!operator.ended());
            tokio::time::sleep(MINUTE).await;
            let writes = operator.handle.writes();
            tokio::time::sleep(20 * MINUTE).await;
            assert_eq!(operator.handle.writes(), writes, "{hours} h");
        });
    }
}

#[test]
fn a_simulated_hour_under_every_fault_converges() {
    simulate(|| async {
        let bench = Bench::new(5);
        rules::install_lasting(&bench.world);
        let fired = storm::blow(&bench, 5, 60 * MINUTE).await;
        for (name, count) in &fired {
            println!("{name:>20}: {count}");
        }
        assert!(fired.len() >= 30, "kinds of faults: {}", fired.len());
        let rare: Vec<_> = fired.iter().filter(|(_, count)| **count < 10).collect();
        assert!(rare.is_empty(), "fired fewer than 10 times: {rare:?}");
        rules::hold(&bench.world);
        let database = bench.database(NAME).expect("it exists");
        assert_eq!(condition(&database, "Ready")["status"], "True");
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
    });
}
