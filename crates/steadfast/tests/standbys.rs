//! Standbys on the simulated cluster, with the real runner and the guard's own script: bring-up, more
//! and fewer of them, losses, settings, passwords (docs/design/0002-standbys.md; reference/database.md
//! section 4; fault catalogue PG-19 to PG-23, PG-35; field cases C-05, C-07).
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use sim::builtin::pods::images::ImageRule;
use support::history::History;
use support::{Bench, LONG, NAME, Operator, TEST_DB, login, rules, simulate, text};

const HOUR: Duration = Duration::from_secs(3600);

/// The exercise's manifest with so many servers.
fn manifest(replicas: u32) -> String {
    TEST_DB.replace("replicas: 1", &format!("replicas: {replicas}"))
}

/// A bench with three servers that are whole, and rows in them.
async fn three(seed: u64) -> (Bench, Operator) {
    let bench = Bench::new(seed);
    rules::install(&bench.world);
    let operator = bench.operator();
    bench.apply(&manifest(3));
    bench.settle(NAME).await;
    whole(&bench, 3).await;
    login::write_rows(&bench.world).await;
    (bench, operator)
}

fn scale(bench: &Bench, replicas: u32) {
    bench.edit(|database| database["spec"]["replicas"] = json!(replicas));
}

/// What a statement answers on one server, as the superuser.
async fn ask(bench: &Bench, ordinal: u32, sql: &str) -> String {
    let password = login::secret(&bench.world, "test-db-superuser", "password");
    let host = format!("test-db-{ordinal}.test-db-headless");
    match login::login(&bench.world, &host, ("postgres", &password, "postgres")).await {
        Ok(client) => login::ask(&client, sql).await.unwrap_or_else(|error| error),
        Err(error) => error,
    }
}

const STREAMS: &str =
    "SELECT application_name, state FROM pg_stat_replication ORDER BY application_name";
const SLOTS: &str = "SELECT slot_name, active FROM pg_replication_slots ORDER BY slot_name";

/// Whether so many servers are there, Ready, nothing lacking.
fn is_whole(bench: &Bench, replicas: u32) -> bool {
    let Some(database) = bench.database(NAME) else { return false };
    support::is_ready(&database)
        && database["status"]["replicaSummary"] == format!("{replicas}/{replicas}")
        && bench.condition(NAME, "Degraded")["status"] == "False"
}

async fn whole(bench: &Bench, replicas: u32) {
    let whole = bench.until(LONG * 4, |_| is_whole(bench, replicas)).await;
    let status = bench.database(NAME).unwrap_or_default()["status"].clone();
    assert!(whole, "not {replicas} servers: {status:#}");
}

/// Waits until `Degraded` holds all these words.
async fn degraded(bench: &Bench, words: &[&str]) {
    let told = || bench.condition(NAME, "Degraded").to_string();
    let holds = bench.until(LONG, |_| words.iter().all(|word| told().contains(word))).await;
    assert!(holds, "wanted {words:?}: {}", told());
}

/// The pods behind a Service.
fn behind(bench: &Bench, service: &str) -> Vec<String> {
    let mut pods: Vec<String> = Vec::new();
    for slice in bench.world.list("EndpointSlice", "default") {
        if slice["metadata"]["labels"]["kubernetes.io/service-name"] == service {
            let all = slice["endpoints"].as_array().cloned().unwrap_or_default();
            pods.extend(all.iter().map(|endpoint| text(endpoint, "/targetRef/name")));
        }
    }
    pods.sort();
    pods
}

/// Every status from `begin` on said Ready.
fn always_ready(history: &History, begin: usize) {
    let seen = history.all();
    let not = seen[begin..].iter().find(|seen| seen.ready != "True");
    assert!(not.is_none(), "{not:?}");
}

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

/// C-07: a standby removed by force with its claim comes back with a fresh copy and its slot.
#[test]
fn c_07_a_lost_standby_is_copied_anew() {
    simulate(|| async {
        let (bench, _operator) = three(44).await;
        let history = History::of(&bench.world, NAME);
        let (pod, claim) = (bench.uid("Pod", "test-db-2"), "data-test-db-2");
        let old = bench.uid("PersistentVolumeClaim", claim);
        bench.world.delete("PersistentVolumeClaim", "default", claim).expect("deleted");
        bench.world.delete("Pod", "default", "test-db-2").expect("deleted");
        degraded(&bench, &["True", "StandbyUnavailable", "test-db-2"]).await;
        whole(&bench, 3).await;
        assert_ne!(bench.uid("Pod", "test-db-2"), pod);
        assert_ne!(bench.uid("PersistentVolumeClaim", claim), old);
        assert_eq!(ask(&bench, 0, STREAMS).await, "test-db-1|streaming;test-db-2|streaming");
        always_ready(&history, 0);
    });
}

/// PG-19: no fresh `initdb` while standbys hold data; they keep them.
#[test]
fn pg_19_an_empty_primary_beside_full_standbys_is_refused() {
    simulate(|| async {
        let (bench, _operator) = three(45).await;
        let identifier = ask(&bench, 1, "SELECT system_identifier FROM pg_control_system()").await;
        let pods = ["test-db-1", "test-db-2"].map(|pod| bench.uid("Pod", pod));
        bench.world.delete("PersistentVolumeClaim", "default", "data-test-db-0").expect("deleted");
        bench.world.delete("Pod", "default", "test-db-0").expect("deleted");
        bench.told(NAME, &["False", "DataMissing", "accept-data-loss"], LONG).await;
        degraded(&bench, &["True", "DataMissing"]).await;
        tokio::time::sleep(HOUR).await;
        assert!(bench.says(NAME).contains("DataMissing"), "{}", bench.says(NAME));
        assert_eq!(["test-db-1", "test-db-2"].map(|pod| bench.uid("Pod", pod)), pods);
        for ordinal in [1, 2] {
            let found = ask(&bench, ordinal, "SELECT system_identifier FROM pg_control_system()");
            assert_eq!(found.await, identifier, "a standby keeps its data");
        }
    });
}

/// PG-20: a standby that starts alone waits for its primary; it never makes or promotes anything.
#[test]
fn pg_20_a_standby_without_its_primary_waits() {
    simulate(|| async {
        let (bench, _operator) = three(46).await;
        let address = |pod: &str| {
            let pod = bench.world.get("Pod", "default", pod).unwrap_or_default();
            text(&pod, "/status/podIP")
        };
        let primary = address("test-db-0");
        bench.world.model(|model| model.network.isolate(&primary));
        bench.world.delete("PersistentVolumeClaim", "default", "data-test-db-2").expect("deleted");
        bench.world.delete("Pod", "default", "test-db-2").expect("deleted");
        tokio::time::sleep(HOUR).await;
        let pod = bench.world.get("Pod", "default", "test-db-2").unwrap_or_default();
        assert_ne!(support::condition(&pod, "Ready")["status"], "True");
        bench.world.model(|model| model.network.rejoin(&primary));
        whole(&bench, 3).await;
        assert_eq!(ask(&bench, 2, "SELECT pg_is_in_recovery()").await, "t");
    });
}

/// PG-21: a copy that broke off is made again, never started as a server.
#[test]
fn pg_21_a_copy_that_broke_off_is_made_again() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(47).await;
        let slow = |c: &mut sim::external::postgres::Conditions| {
            c.copying = Duration::from_secs(120);
        };
        bench.world.disturb("default", "test-db-0", slow).expect("the primary runs");
        scale(&bench, 2);
        tokio::time::sleep(Duration::from_secs(60)).await;
        degraded(&bench, &["StandbyUnavailable", "test-db-1"]).await;
        bench.world.delete("Pod", "default", "test-db-1").expect("deleted");
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_ne!(ask(&bench, 1, "SELECT 1").await, "1", "half a copy is not started");
        whole(&bench, 2).await;
        assert_eq!(ask(&bench, 0, STREAMS).await, "test-db-1|streaming");
    });
}

/// PG-22: the slot of a removed standby goes, although nobody said good-bye.
#[test]
fn pg_22_the_slot_of_a_removed_standby_goes() {
    simulate(|| async {
        let (bench, _operator) = three(48).await;
        let pod = bench.world.get("Pod", "default", "test-db-2").unwrap_or_default();
        let address = text(&pod, "/status/podIP");
        bench.world.model(|model| model.network.isolate(&address));
        scale(&bench, 1);
        whole(&bench, 1).await;
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_eq!(ask(&bench, 0, SLOTS).await, "");
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
    });
}

/// A standby that lags beyond `max_slot_wal_keep_size` is seeded anew; the primary keeps no more.
#[test]
fn a_standby_beyond_help_is_seeded_anew() {
    simulate(|| async {
        let (bench, _operator) = three(49).await;
        let history = History::of(&bench.world, NAME);
        let address = |pod: &str| {
            text(&bench.world.get("Pod", "default", pod).unwrap_or_default(), "/status/podIP")
        };
        let cut = (address("test-db-0"), address("test-db-1"));
        bench.world.model(|model| model.network.cut(&cut.0, &cut.1));
        degraded(&bench, &["StandbyUnavailable", "test-db-1 does not stream"]).await;
        let primary = bench.world.postgres("default", "test-db-0").expect("it runs");
        // Slowly enough for the other one.
        for _ in 0..5 {
            primary.write_log(400 << 20);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        primary.checkpoint();
        bench.world.model(|model| model.network.mend(&cut.0, &cut.1));
        whole(&bench, 3).await;
        let config = bench.world.get("ConfigMap", "default", "test-db-config").unwrap_or_default();
        assert!(config["data"].get("reseed-1").is_some(), "it was asked for");
        assert!(config["data"].get("reseed-2").is_none());
        assert_eq!(ask(&bench, 0, STREAMS).await, "test-db-1|streaming;test-db-2|streaming");
        always_ready(&history, 0);
    });
}

/// A standby that somebody promoted holds what may be the newest data: it is told of, not wiped.
#[test]
fn a_promoted_standby_is_told_of_and_not_wiped() {
    simulate(|| async {
        let (bench, _operator) = three(50).await;
        assert_eq!(ask(&bench, 2, "SELECT pg_promote()").await, "t");
        degraded(&bench, &["StandbyUnavailable", "test-db-2 follows no primary"]).await;
        bench.world.delete("Pod", "default", "test-db-2").expect("deleted");
        degraded(&bench, &["StandbyUnavailable", "test-db-2", "NotAStandby"]).await;
        bench.world.delete("PersistentVolumeClaim", "default", "data-test-db-2").expect("deleted");
        bench.world.delete("Pod", "default", "test-db-2").expect("deleted");
        whole(&bench, 3).await;
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

/// C-05: the way to the primary is shut for the copy; the condition names standby, address and words.
#[test]
fn c_05_a_copy_that_cannot_begin_is_told_and_made_when_it_can() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(54).await;
        let history = History::of(&bench.world, NAME);
        login::write_rows(&bench.world).await;
        bench.world.model(|model| {
            model.programs.behave(
                "default/test-db-1/guard",
                sim::builtin::pods::program::Behaviour::Crash {
                    after: 500,
                    exit: sim::builtin::pods::program::Exit {
                        code: 1,
                        message:
                            "copying from the primary: the volume is empty\nStandbyCopyFailed: \
                              pg_basebackup: error: connection to server at \"test-db-0\" \
                              (10.244.0.2), port 5432 failed: Connection refused\n"
                                .to_owned(),
                    },
                },
            )
        });
        scale(&bench, 2);
        degraded(&bench, &["test-db-1", "10.244.0.2", "Connection refused"]).await;
        tokio::time::sleep(Duration::from_secs(360)).await;
        bench.world.model(|model| model.programs.recover("default/test-db-1/guard"));
        whole(&bench, 2).await;
        always_ready(&history, 0);
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
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
