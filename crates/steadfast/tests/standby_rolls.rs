//! Rollouts that meet standbys in the making, on the simulated cluster: a StatefulSet adds servers, and
//! waits for each that is not ready, before it rolls the primary; a standby waits for what the operator
//! makes on the primary. Neither may wait for the other (docs/design/0002-standbys.md).
//!
//! Found by the edits of `foresight` (seed 104, edit 243). Everything here runs under virtual time.

mod support;

use serde_json::{Value, json};
use support::replicas::{STREAMS, ask, manifest, three, whole};
use support::{Bench, LONG, NAME, login, rules, simulate};

fn another_template(database: &mut Value) {
    database["spec"]["podTemplate"]["annotations"] = json!({"example.com/note": "rolled"});
}

/// All servers run the template that was written, and stream.
async fn rolled(bench: &Bench, replicas: u32) {
    whole(bench, replicas).await;
    for ordinal in 0..replicas {
        let pod = bench.world.get("Pod", "default", &format!("{NAME}-{ordinal}"));
        let note = pod.unwrap_or_default()["metadata"]["annotations"]["example.com/note"].clone();
        assert_eq!(note, "rolled", "{ordinal}");
    }
    let streams = (1..replicas).map(|n| format!("{NAME}-{n}|streaming")).collect::<Vec<_>>();
    assert_eq!(ask(bench, 0, STREAMS).await, streams.join(";"));
}

#[test]
fn more_servers_and_another_template_in_one_edit_do_not_wait_for_each_other() {
    for (before, after) in [(1, 3), (2, 3), (2, 5)] {
        simulate(move || async move {
            let bench = Bench::new(60 + u64::from(after));
            rules::install(&bench.world);
            let _operator = bench.operator();
            bench.apply(&manifest(before));
            whole(&bench, before).await;
            bench.edit(|database| {
                database["spec"]["replicas"] = json!(after);
                another_template(database);
            });
            rolled(&bench, after).await;
            rules::hold(&bench.world);
        });
    }
}

/// A primary that cannot hold another slot before it has started anew.
#[test]
fn servers_that_need_a_setting_come_after_the_primary_runs_with_it() {
    simulate(|| async {
        let bench = Bench::new(64);
        rules::install(&bench.world);
        let _operator = bench.operator();
        let settings = "  parameters: {max_replication_slots: \"1\", max_wal_senders: \"3\"}\n";
        bench.apply(&format!("{}{settings}", manifest(2)));
        whole(&bench, 2).await;
        bench.edit(|database| {
            database["spec"]["replicas"] = json!(4);
            database["spec"]["parameters"]["max_replication_slots"] = json!("6");
            database["spec"]["parameters"]["max_wal_senders"] = json!("9");
            another_template(database);
        });
        rolled(&bench, 4).await;
        assert_eq!(ask(&bench, 0, "SELECT current_setting('max_replication_slots')").await, "6");
        rules::hold(&bench.world);
    });
}

/// The set has more servers already, and nothing of what they need is made, when the template changes.
#[test]
fn a_roll_that_meets_a_set_that_has_grown_goes_through() {
    simulate(|| async {
        let (bench, operator) = Bench::with_test_db(65).await;
        rules::install(&bench.world);
        login::write_rows(&bench.world).await;
        operator.kill();
        let set = |set: &mut Value| set["spec"]["replicas"] = json!(3);
        bench.world.edit("StatefulSet", "default", NAME, set).expect("a hand may scale it");
        let begun = bench.until(LONG, |world| world.get("Pod", "default", "test-db-1").is_some());
        assert!(begun.await, "the set makes the first of them");
        bench.edit(|database| {
            database["spec"]["replicas"] = json!(3);
            another_template(database);
        });
        let _operator = bench.operator();
        rolled(&bench, 3).await;
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
        rules::hold(&bench.world);
    });
}

/// A standby that lost its volume copies with a password that is not in force yet.
#[test]
fn a_roll_that_meets_a_lost_standby_and_a_new_password_goes_through() {
    simulate(|| async {
        let (bench, operator) = three(66).await;
        operator.kill();
        let password = |secret: &mut Value| secret["data"]["password"] = json!("c3dvcmRmaXNo");
        bench.world.edit("Secret", "default", "test-db-replication", password).expect("a hand may");
        for (kind, name) in [("PersistentVolumeClaim", "data-test-db-2"), ("Pod", "test-db-2")] {
            bench.world.delete(kind, "default", name).expect("it is there");
        }
        bench.edit(another_template);
        let _operator = bench.operator();
        rolled(&bench, 3).await;
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
    });
}
