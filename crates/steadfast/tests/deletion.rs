//! Deletion in every state and mode ends in time and takes only what it may (fault catalogue PG-01
//! to PG-04, PG-30, PG-43, G-40, G-42 to G-45).
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use serde_json::json;
use sim::builtin::pods::images::ImageRule;
use sim::external::Dialogue;
use sim::faults::{Effect, Match, Often, Rule};
use sim::{DeleteOptions, Propagation};
use support::{Bench, FOREIGN_SET, LONG, NAME, OPERATOR, TEST_DB, login, rules, simulate, text};

/// Within this a deletion ends when nothing outside holds it.
const BOUND: Duration = Duration::from_secs(60);

const PHASES: [&str; 6] =
    ["Pending", "Provisioning", "Configuring", "Deploying", "Verifying", "Ready"];

fn delete(bench: &Bench) {
    bench.world.delete("Database", "default", NAME).expect("deleted");
}

async fn gone(bench: &Bench, longest: Duration, what: &str) {
    let gone = bench.until(longest, |_| bench.database(NAME).is_none());
    assert!(gone.await, "{what}: still there: {:#}", bench.database(NAME).unwrap_or_default());
}

#[test]
fn pg_01_the_loser_of_a_name_clash_removes_nothing_of_the_winners() {
    simulate(|| async {
        let bench = Bench::new(61);
        let _operator = bench.operator();
        bench.apply(FOREIGN_SET);
        let up =
            bench.until(LONG, |_| !bench.uid("PersistentVolumeClaim", "data-test-db-0").is_empty());
        assert!(up.await);
        let uids = |b: &Bench| {
            (b.uid("StatefulSet", NAME), b.uid("PersistentVolumeClaim", "data-test-db-0"))
        };
        let before = uids(&bench);
        bench.apply(&format!("{TEST_DB}  deletionPolicy: Delete\n"));
        bench.told(NAME, &["NameConflict", NAME], BOUND).await;
        delete(&bench);
        gone(&bench, BOUND, "blocked").await;
        tokio::time::sleep(BOUND).await;
        assert_eq!(uids(&bench), before, "something of the winner's is gone");
    });
}

#[test]
fn pg_02_a_deletion_is_let_through_in_each_phase_of_the_first_bring_up() {
    for phase in PHASES {
        for policy in ["Retain", "Delete"] {
            simulate(move || async move {
                let bench = Bench::new(62);
                let _operator = bench.operator();
                bench.apply(&format!("{TEST_DB}  deletionPolicy: {policy}\n"));
                let key = sim::Key::new("database.example.com", "databases", "default", NAME);
                let seen = bench.world.wait_until(LONG, |store| {
                    store.get(&key).is_some_and(|d| text(d, "/status/phase") == phase)
                });
                assert!(seen.await, "{phase} was never seen");
                delete(&bench);
                gone(&bench, BOUND, phase).await;
                tokio::time::sleep(BOUND).await;
                for kind in ["StatefulSet", "Service", "ConfigMap", "Pod"] {
                    let left: Vec<String> = bench
                        .world
                        .list(kind, "default")
                        .iter()
                        .map(|o| text(o, "/metadata/name"))
                        .filter(|n| n.contains(NAME))
                        .collect();
                    assert!(left.is_empty(), "{phase}: {kind} {left:?}");
                }
                let claims = bench.world.list("PersistentVolumeClaim", "default").len();
                assert!(policy == "Retain" || claims == 0, "{phase}: {claims} claims are left");
            });
        }
    }
}

#[test]
fn pg_02_no_gate_holds_a_deletion_up() {
    type Case = (&'static str, fn(&Bench), &'static str);
    let cases: [Case; 3] = [
        (
            "a dependency is down",
            |b| {
                b.world.model(|m| m.network.host("x.y.svc.cluster.local", 80, Dialogue::Drop));
                b.apply(&format!("{TEST_DB}  externalDependencies: [{{name: x, address: 'x.y.svc.cluster.local:80'}}]\n"));
            },
            "ExternalDependencyUnavailable",
        ),
        (
            "the spec is invalid",
            |b| {
                b.lax();
                b.apply(&TEST_DB.replace("mydb", "'a b'"));
            },
            "InvalidSpec",
        ),
        (
            "it has failed",
            |b| {
                b.world.model(|m| m.images.rule("postgres:14", ImageRule::Missing));
                b.apply(&format!("{TEST_DB}  progressDeadlineSeconds: 30\n"));
            },
            "ProgressDeadlineExceeded",
        ),
    ];
    for (what, act, reason) in cases {
        simulate(move || async move {
            let bench = Bench::new(63);
            let _operator = bench.operator();
            act(&bench);
            bench.told(NAME, &[reason], LONG).await;
            delete(&bench);
            gone(&bench, BOUND, what).await;
        });
    }
}

#[test]
fn pg_03_g_41_a_deletion_while_the_operator_was_away_is_found_on_its_start() {
    simulate(|| async {
        let (bench, operator) = Bench::with_test_db(64).await;
        operator.kill();
        delete(&bench);
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(bench.database(NAME).is_some(), "nobody removed our finalizer");
        let _operator = bench.operator();
        gone(&bench, BOUND, "operator back").await;
    });
}

#[test]
fn pg_04_removing_the_finalizer_is_retried_through_errors_and_a_lost_reply() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(65).await;
        let patches = || {
            let mut when =
                Match::verbs(&["patch"]).on("database.example.com", "databases").by(OPERATOR);
            when.subresource = "-".to_owned();
            when
        };
        let (errors, lost) = bench.world.cluster.with(|core| {
            let error = Effect::Respond { code: 500, retry_after: None };
            (
                core.faults.add(Rule::new(patches(), Often::First(3), error)),
                core.faults.add(Rule::new(patches(), Often::Nth(4), Effect::LostReply)),
            )
        });
        delete(&bench);
        gone(&bench, LONG, "errors").await;
        bench.world.cluster.with(|core| {
            assert_eq!((core.faults.fired(errors), core.faults.fired(lost)), (3, 1));
        });
        tokio::time::sleep(BOUND).await;
        let deletes = bench.writes().iter().filter(|w| w.starts_with("delete")).count();
        assert_eq!(deletes, 0, "Retain deletes nothing");
    });
}

#[test]
fn pg_30_a_claim_that_is_still_going_is_waited_for() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(66).await;
        bench.edit(|d| d["spec"]["deletionPolicy"] = json!("Delete"));
        bench.settle(NAME).await;
        let hold = |finalizers: serde_json::Value| {
            bench.world.edit("PersistentVolumeClaim", "default", "data-test-db-0", |claim| {
                claim["metadata"]["finalizers"] = finalizers;
            })
        };
        hold(json!(["kubernetes.io/pvc-protection", "example.com/hold"])).expect("held");
        let old = bench.uid("PersistentVolumeClaim", "data-test-db-0");
        delete(&bench);
        gone(&bench, LONG, "claim held").await;
        bench.apply(TEST_DB);
        bench.told(NAME, &["ChildTerminating", "data-test-db-0"], BOUND).await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert!(bench.uid("Pod", "test-db-0").is_empty(), "a pod was bound to the old claim");
        hold(json!([])).expect("let go");
        bench.settle(NAME).await;
        let new = bench.uid("PersistentVolumeClaim", "data-test-db-0");
        assert!(!new.is_empty() && new != old);
    });
}

#[test]
fn g_42_pg_43_each_propagation_mode_ends_and_nothing_is_made_again() {
    for mode in [Propagation::Foreground, Propagation::Background, Propagation::Orphan] {
        simulate(move || async move {
            let (bench, _operator) = Bench::with_test_db(67).await;
            rules::install(&bench.world);
            login::write_rows(&bench.world).await;
            tokio::time::sleep(Duration::from_secs(20)).await;
            let (before, pod) = (bench.writes().len(), bench.uid("Pod", "test-db-0"));
            let options = DeleteOptions { propagation: Some(mode), ..DeleteOptions::default() };
            bench.world.delete_with("Database", "default", NAME, options).expect("deleted");
            gone(&bench, LONG, "mode").await;
            tokio::time::sleep(BOUND).await;
            let made: Vec<String> = bench
                .writes()
                .split_off(before)
                .into_iter()
                .filter(|w| !w.contains(&format!("databases/{NAME}")))
                .collect();
            assert!(made.is_empty(), "{made:?}");
            if mode == Propagation::Orphan {
                assert_eq!(bench.uid("Pod", "test-db-0"), pod, "orphans stay");
            } else {
                assert!(bench.uid("Pod", "test-db-0").is_empty());
            }
            bench.apply(TEST_DB);
            bench.settle(NAME).await;
            assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
            rules::hold(&bench.world);
        });
    }
}

#[test]
fn g_43_the_same_name_again_at_once_ends_as_the_last_manifest_says() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(68).await;
        for round in 0..8 {
            delete(&bench);
            gone(&bench, LONG, "again").await;
            let sized = TEST_DB.replace("postgres:14", &format!("postgres:14.{}", 10 + round));
            bench.apply(&sized);
            tokio::time::sleep(Duration::from_millis(700 * round)).await;
        }
        bench.settle(NAME).await;
        let pod = bench.world.get("Pod", "default", "test-db-0").expect("it runs");
        assert_eq!(text(&pod, "/spec/containers/0/image"), "postgres:14.17");
        let database = bench.database(NAME).expect("it exists");
        let owner = bench.world.get("StatefulSet", "default", NAME).expect("it exists");
        assert_eq!(owner["metadata"]["ownerReferences"][0]["uid"], database["metadata"]["uid"]);
    });
}

#[test]
fn g_45_only_our_own_finalizer_is_removed() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(69).await;
        bench.edit(|d| {
            d["metadata"]["finalizers"]
                .as_array_mut()
                .expect("ours")
                .push(json!("example.com/theirs"));
        });
        delete(&bench);
        let released = bench.until(BOUND, |_| {
            bench
                .database(NAME)
                .is_some_and(|d| d["metadata"]["finalizers"] == json!(["example.com/theirs"]))
        });
        assert!(released.await, "{:#}", bench.database(NAME).unwrap_or_default());
        let writes = bench.writes().len();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(bench.writes().len(), writes, "nothing is written to what is going");
        bench.edit(|d| d["metadata"]["finalizers"] = json!([]));
        gone(&bench, BOUND, "released").await;
    });
}

#[test]
fn g_40_pg_44_a_namespace_that_goes_away_ends_at_every_point_of_a_bring_up() {
    for millis in [0, 30, 200, 1000, 3000, 6000, 30_000] {
        simulate(move || async move {
            let bench = Bench::new(70);
            let operator = bench.operator();
            bench.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}");
            bench.apply(&TEST_DB.replace("name: test-db", "name: test-db\n  namespace: shop"));
            tokio::time::sleep(Duration::from_millis(millis)).await;
            bench.world.delete("Namespace", "", "shop").expect("deleted");
            let ended = bench.until(LONG, |w| w.get("Namespace", "", "shop").is_none());
            let left = bench.world.list("Database", "shop");
            assert!(ended.await, "after {millis} ms: {left:#?}");
            let writes = operator.handle.writes();
            tokio::time::sleep(Duration::from_secs(300)).await;
            assert_eq!(operator.handle.writes(), writes, "no retry storm");
        });
    }
}
