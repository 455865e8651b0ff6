//! Standbys on the simulated cluster, with the real runner and the guard's own script: bring-up, more
//! and fewer of them, settings, passwords (docs/design/0002-standbys.md; reference/database.md section
//! 4; fault catalogue PG-23, PG-35).
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use sim::builtin::pods::images::ImageRule;
use support::history::History;
use support::replicas::{
    SLOTS, STREAMS, always_ready, ask, behind, is_whole, manifest, scale, three, whole,
};
use support::{Bench, LONG, NAME, login, rules, simulate};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn three_servers_come_up_and_two_of_them_stream() {
    simulate(|| async {
        let bench = Bench::new(41);
        rules::install(&bench.world);
        let history = History::of(&bench.world, NAME);
        let _operator = bench.operator();
        bench.apply(&manifest(3));
        bench.settle(NAME).await;
        assert!(is_whole(&bench, 3), "the first Ready is that of all");
        let phases = ["Pending", "Provisioning", "Configuring", "Deploying", "Verifying", "Ready"];
        assert_eq!(history.phases(), phases);
        assert_eq!(ask(&bench, 0, STREAMS).await, "test-db-1|streaming;test-db-2|streaming");
        assert_eq!(ask(&bench, 0, SLOTS).await, "steadfast_1|t;steadfast_2|t");
        assert_eq!(behind(&bench, "test-db"), ["test-db-0"]);
        assert_eq!(behind(&bench, "test-db-ro"), ["test-db-1", "test-db-2"]);
        login::write_rows(&bench.world).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let password = login::secret(&bench.world, "test-db-credentials", "password");
        let reader = login::login(&bench.world, "test-db-ro", ("admin", &password, "mydb"));
        let reader = reader.await.expect("standbys let the application in");
        let rows = login::ask(&reader, "SELECT * FROM kept ORDER BY id").await;
        assert_eq!(rows.as_deref(), Ok(login::ROWS));
        let refused = login::ask(&reader, "INSERT INTO kept VALUES (3, 'three')").await;
        assert!(refused.is_err_and(|said| said.starts_with("25006")));
        rules::hold(&bench.world);
    });
}

#[test]
fn three_servers_that_are_whole_cost_no_write() {
    simulate(|| async {
        let (bench, operator) = three(42).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let writes = operator.handle.writes();
        tokio::time::sleep(10 * HOUR).await;
        assert_eq!(operator.handle.writes(), writes, "{:#?}", bench.writes());
        rules::hold(&bench.world);
    });
}

/// PG-23: rows are on all servers in the end, whatever the path; the primary is neither restarted nor
/// less than Ready for a moment.
#[test]
fn pg_23_more_and_fewer_servers_leave_the_primary_alone() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(43).await;
        rules::install(&bench.world);
        login::write_rows(&bench.world).await;
        let uid = bench.uid("Pod", "test-db-0");
        let history = History::of(&bench.world, NAME);
        let mut row = 2;
        for replicas in [3, 1, 3, 2, 3, 1] {
            scale(&bench, replicas);
            whole(&bench, replicas).await;
            row += 1;
            let client = login::application(&bench.world).await.expect("the primary serves");
            let insert = format!("INSERT INTO kept VALUES ({row}, 'more')");
            login::ask(&client, &insert).await.expect("the primary takes writes");
            tokio::time::sleep(Duration::from_secs(90)).await;
            let wanted: Vec<String> = (1..replicas).map(|n| format!("steadfast_{n}|t")).collect();
            assert_eq!(ask(&bench, 0, SLOTS).await, wanted.join(";"), "{replicas}");
            assert_eq!(bench.uid("Pod", "test-db-0"), uid);
            let exists = |kind: &str, name: &str| bench.world.get(kind, "default", name).is_some();
            assert_eq!(exists("Service", "test-db-ro"), replicas > 1);
            assert_eq!(exists("PodDisruptionBudget", "test-db"), replicas > 1);
        }
        assert!(bench.world.get("PersistentVolumeClaim", "default", "data-test-db-2").is_some());
        always_ready(&history, 0);
        rules::hold(&bench.world);
    });
}

/// The five ordered settings: raised, then lowered below what standbys saw.
#[test]
fn ordered_settings_rise_and_fall_without_a_standby_that_cannot_start() {
    simulate(|| async {
        let (bench, _operator) = three(51).await;
        for value in ["200", "50"] {
            bench.edit(|database| {
                database["spec"]["parameters"] =
                    json!({"max_connections": value, "max_locks_per_transaction": value});
            });
            whole(&bench, 3).await;
            let settled = bench.until(LONG, |_| is_whole(&bench, 3)).await;
            assert!(settled);
            tokio::time::sleep(Duration::from_secs(60)).await;
            whole(&bench, 3).await;
            for ordinal in 0..3 {
                let found = "SELECT current_setting('max_connections'), \
                             current_setting('max_locks_per_transaction'), \
                             current_setting('steadfast.raised', true)";
                let found = ask(&bench, ordinal, found).await;
                assert!(found.starts_with(&format!("{value}|{value}|")), "{ordinal}: {found}");
                assert!(!found.ends_with("on"), "{ordinal}: {found}");
            }
        }
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
    });
}

/// PG-35 with standbys: a bad image stops at the first standby; a good one heals.
#[test]
fn pg_35_a_bad_image_stops_at_one_standby() {
    simulate(|| async {
        let (bench, _operator) = three(52).await;
        let kept = ["test-db-0", "test-db-1"].map(|pod| bench.uid("Pod", pod));
        bench.world.model(|model| model.images.rule("postgres:14.99", ImageRule::Missing));
        bench.edit(|database| database["spec"]["image"] = json!("postgres:14.99"));
        bench.told(NAME, &["False", "ImagePullFailed", "test-db-2"], LONG).await;
        assert_eq!(["test-db-0", "test-db-1"].map(|pod| bench.uid("Pod", pod)), kept);
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS), "it serves on");
        bench.edit(|database| database["spec"]["image"] = json!("postgres:14"));
        whole(&bench, 3).await;
        assert_eq!(["test-db-0", "test-db-1"].map(|pod| bench.uid("Pod", pod)), kept);
    });
}

/// The password of replication, written by a person.
#[test]
fn an_edited_replication_password_comes_into_force_everywhere() {
    simulate(|| async {
        let (bench, _operator) = three(53).await;
        let history = History::of(&bench.world, NAME);
        let edited = bench.world.edit("Secret", "default", "test-db-replication", |secret| {
            secret["data"]["password"] = json!(login::encoded("an:other\\password of ours"));
        });
        edited.expect("edited");
        tokio::time::sleep(Duration::from_secs(400)).await;
        // Streams go on; a standby that must log in again has the old password, until it is restarted.
        let old = ["test-db-1", "test-db-2"].map(|pod| bench.uid("Pod", pod));
        let primary = bench.world.postgres("default", "test-db-0").expect("it runs");
        primary.crash("PANIC:  a test");
        bench.world.model(|_| ());
        whole(&bench, 3).await;
        let settled = |bench: &Bench| {
            is_whole(bench, 3) && ["test-db-1", "test-db-2"].map(|pod| bench.uid("Pod", pod)) != old
        };
        assert!(bench.until(LONG * 2, |_| settled(&bench)).await, "{}", bench.says(NAME));
        whole(&bench, 3).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(ask(&bench, 0, STREAMS).await, "test-db-1|streaming;test-db-2|streaming");
        drop(history);
    });
}

/// Volumes of removed standbys go where the policy says so, and nothing else does.
#[test]
fn the_policy_delete_takes_volumes_of_removed_standbys() {
    simulate(|| async {
        let bench = Bench::new(55);
        let operator = bench.operator();
        bench.apply(&manifest(3));
        bench.settle(NAME).await;
        bench.edit(|database: &mut Value| database["spec"]["deletionPolicy"] = json!("Delete"));
        scale(&bench, 1);
        let gone = |n: u32| {
            let claim = format!("data-test-db-{n}");
            bench.world.get("PersistentVolumeClaim", "default", &claim).is_none()
        };
        assert!(bench.until(LONG, |_| gone(1) && gone(2)).await);
        assert!(!gone(0));
        whole(&bench, 1).await;
        assert!(
            !operator.metrics.text().contains("plan_broke_a_rule_total{controller=\"database\"} ")
        );
        scale(&bench, 2);
        whole(&bench, 2).await;
    });
}
