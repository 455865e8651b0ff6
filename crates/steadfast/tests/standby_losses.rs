//! Standbys that are lost, cut off, left behind or promoted, and a primary that is lost beside them
//! (fault catalogue PG-19 to PG-22; field cases C-05, C-07; docs/design/0002-standbys.md).
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use support::history::History;
use support::replicas::{SLOTS, STREAMS, always_ready, ask, degraded, scale, three, whole};
use support::{Bench, LONG, NAME, login, simulate, text};

const HOUR: Duration = Duration::from_secs(3600);

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
