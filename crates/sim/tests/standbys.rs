//! A primary with streaming standbys in pods: seeding, streaming, faults, and what each side shows.

#[path = "support/replicated.rs"]
mod replicated;

use std::time::Duration;

use replicated::{ask, end, log, set, settled, volume};
use sim::world::World;

/// A primary with so many pods, ready or given up on after three minutes.
async fn up(replicas: usize) -> (World, tokio::task::JoinHandle<()>) {
    let world = World::new(1);
    let driver = world.spawn();
    world.apply(&set(1, "postgres:15", "")).expect("applied");
    settled(&world, 1).await;
    replicated::prepare(&world, replicas).await;
    world.apply(&set(replicas, "postgres:15", "")).expect("applied");
    settled(&world, replicas).await;
    (world, driver)
}

const STREAMS: &str = "SELECT application_name, state, sync_state, replay_lsn = \
                       pg_current_wal_lsn() FROM pg_stat_replication ORDER BY 1";
const SLOTS: &str = "SELECT slot_name, active, wal_status, restart_lsn IS NOT NULL FROM \
                     pg_replication_slots ORDER BY 1";

#[tokio::test(start_paused = true)]
async fn standbys_are_seeded_and_stream() {
    let (world, driver) = up(3).await;
    world.run_for(Duration::from_secs(1)).await;
    assert_eq!(ask(&world, 0, STREAMS).await, "db-1|streaming|async|t;db-2|streaming|async|t");
    assert_eq!(ask(&world, 0, SLOTS).await, "slot_1|t|reserved|t;slot_2|t|reserved|t");
    ask(&world, 0, "CREATE ROLE later").await;
    world.run_for(Duration::from_millis(50)).await;
    for ordinal in [1, 2] {
        let found = "SELECT rolname, pg_is_in_recovery() FROM pg_roles WHERE rolname = 'later'";
        assert_eq!(ask(&world, ordinal, found).await, "later|t");
        let refused = ask(&world, ordinal, "CREATE ROLE more").await;
        assert_eq!(refused, "25006 cannot execute CREATE ROLE in a read-only transaction");
        let receiver = "SELECT status, slot_name, sender_host FROM pg_stat_wal_receiver";
        let expected = format!("streaming|slot_{ordinal}|db-0.db.default.svc");
        assert_eq!(ask(&world, ordinal, receiver).await, expected);
        let control = "SELECT system_identifier FROM pg_control_system()";
        assert_eq!(ask(&world, ordinal, control).await, ask(&world, 0, control).await);
    }
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_standby_waits_with_the_servers_words_until_it_may_copy() {
    let world = World::new(2);
    let driver = world.spawn();
    world.apply(&set(2, "postgres:15", "")).expect("applied");
    settled(&world, 1).await;
    world.run_for(Duration::from_secs(60)).await;
    let words = end(&world, 1);
    let at = "connection to server at \"db-0.db.default.svc\"";
    assert!(words.contains(at), "{words}");
    assert!(words.contains("FATAL:  password authentication failed for user \"repl\""), "{words}");
    ask(&world, 0, "CREATE ROLE repl LOGIN PASSWORD 'pw-repl'").await;
    world.run_for(Duration::from_secs(330)).await;
    let words = end(&world, 1);
    assert!(words.contains("must be superuser or replication role to start walsender"), "{words}");
    ask(&world, 0, "ALTER ROLE repl REPLICATION").await;
    world.run_for(Duration::from_secs(330)).await;
    let words = end(&world, 1);
    assert!(words.contains("ERROR:  replication slot \"slot_1\" does not exist"), "{words}");
    assert!(words.contains("background process terminated unexpectedly"), "{words}");
    ask(&world, 0, "SELECT pg_create_physical_replication_slot('slot_1')").await;
    settled(&world, 2).await;
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_is_cut_off_leaves_half_a_folder_that_no_server_takes() {
    let world = World::new(3);
    let driver = world.spawn();
    world.apply(&set(1, "postgres:15", "")).expect("applied");
    settled(&world, 1).await;
    replicated::prepare(&world, 2).await;
    let slow = |c: &mut sim::external::postgres::Conditions| c.copying = Duration::from_secs(600);
    world.disturb("default", "db-0", slow).expect("the primary runs");
    world.apply(&set(2, "postgres:15", "")).expect("applied");
    world.run_for(Duration::from_secs(60)).await;
    let both = "db-1|backup|async|;db-1|streaming|async|";
    let state = "SELECT coalesce(nullif(application_name, 'pg_basebackup'), 'db-1'), state, \
                 sync_state, replay_lsn FROM pg_stat_replication ORDER BY state";
    assert_eq!(ask(&world, 0, state).await.replace("NULL", ""), both);
    let half = volume(&world, 1);
    let kept = |name: &str| world.model(|m| m.volumes.file(&half, name).map(str::to_owned));
    assert!(kept("pgdata/backup_label").is_some() && kept("pgdata/PG_VERSION").is_some());
    // The seeding script would clean up: a server by itself meets the half-made folder.
    world.apply(&set(2, "postgres:15", "noguard")).expect("applied");
    world.delete("Pod", "default", "db-1").expect("deleted");
    world.run_for(Duration::from_secs(60)).await;
    let words = end(&world, 1);
    assert!(words.contains("postgres: could not find the database system"), "{words}");
    assert!(words.contains("pgdata/global/pg_control\": No such file or directory"), "{words}");
    assert_eq!(ask(&world, 0, "SELECT count(*) FROM pg_stat_replication").await, "0");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_falls_too_far_behind_is_lost_and_its_standby_streams_no_more() {
    let (world, driver) = up(2).await;
    world.run_for(Duration::from_secs(1)).await;
    world.apply(&set(1, "postgres:15", "")).expect("applied");
    world.run_for(Duration::from_secs(30)).await;
    assert_eq!(ask(&world, 0, SLOTS).await, "slot_1|f|reserved|t");
    let primary = world.postgres("default", "db-0").expect("the primary runs");
    primary.write_log(200 << 20);
    primary.checkpoint();
    assert_eq!(ask(&world, 0, SLOTS).await, "slot_1|f|lost|f");
    world.apply(&set(2, "postgres:15", "")).expect("applied");
    settled(&world, 2).await;
    world.run_for(Duration::from_secs(30)).await;
    let words = log(&world, 1);
    assert!(
        words.contains("could not receive data from WAL stream: ERROR:  requested WAL segment")
    );
    assert!(words.contains("has already been removed"), "{words}");
    assert_eq!(ask(&world, 0, STREAMS).await, "");
    assert_eq!(ask(&world, 1, "SELECT count(*) FROM pg_stat_wal_receiver").await, "0");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_standby_must_not_have_lower_settings_than_its_primary() {
    let (world, driver) = up(2).await;
    ask(&world, 0, "ALTER SYSTEM SET max_connections = 150").await;
    world.delete("Pod", "default", "db-0").expect("deleted");
    settled(&world, 2).await;
    world.run_for(Duration::from_secs(30)).await;
    let words = log(&world, 1);
    let lower = "max_connections = 100 is a lower setting than on the primary server, where its \
                 value was 150.";
    assert!(words.contains("hot standby is not possible because of insufficient parameter"));
    assert!(words.contains(lower), "{words}");
    let paused = "SELECT pg_is_wal_replay_paused(), pg_get_wal_replay_pause_state()";
    assert_eq!(ask(&world, 1, paused).await, "t|paused");
    let behind = "SELECT state, flush_lsn = pg_current_wal_lsn(), replay_lsn < flush_lsn FROM \
                  pg_stat_replication";
    assert_eq!(ask(&world, 0, behind).await, "streaming|t|t");
    world.delete("Pod", "default", "db-1").expect("deleted");
    world.run_for(Duration::from_secs(30)).await;
    let words = end(&world, 1);
    let aborted = "FATAL:  recovery aborted because of insufficient parameter settings";
    assert!(words.contains(aborted) && words.contains(lower), "{words}");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_cut_way_is_noticed_by_both_sides_after_a_minute_and_mended_by_itself() {
    let (world, driver) = up(2).await;
    let [one, two] = [0, 1].map(|ordinal| replicated::address(&world, ordinal));
    world.model(|model| model.network.cut(&one, &two));
    world.run_for(Duration::from_secs(30)).await;
    ask(&world, 0, "CREATE ROLE unseen").await;
    let streams = "SELECT state FROM pg_stat_replication";
    assert_eq!(ask(&world, 0, streams).await, "streaming", "nobody has noticed yet");
    world.run_for(Duration::from_secs(120)).await;
    assert_eq!(ask(&world, 0, streams).await, "");
    let unseen = "SELECT count(*) FROM pg_roles WHERE rolname = 'unseen'";
    assert_eq!(ask(&world, 1, unseen).await, "0");
    assert!(log(&world, 1).contains("terminating walreceiver due to timeout"));
    world.model(|model| model.network.mend(&one, &two));
    world.run_for(Duration::from_secs(180)).await;
    assert_eq!(ask(&world, 0, streams).await, "streaming");
    assert_eq!(ask(&world, 1, unseen).await, "1");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_standby_on_a_full_disk_ends_and_comes_back_when_there_is_room() {
    let (world, driver) = up(2).await;
    let full = volume(&world, 1);
    world.model(|model| model.volumes.fill(&full));
    ask(&world, 0, "CREATE ROLE much").await;
    world.run_for(Duration::from_secs(20)).await;
    let words = end(&world, 1);
    assert!(words.contains("FATAL:  could not extend file"), "{words}");
    assert!(words.contains("shutting down due to startup process failure"), "{words}");
    world.model(|model| model.volumes.free(&full));
    world.run_for(Duration::from_secs(400)).await;
    assert_eq!(ask(&world, 0, STREAMS).await, "db-1|streaming|async|t");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_promoted_standby_writes_and_its_primary_is_no_longer_followed() {
    let (world, driver) = up(2).await;
    assert_eq!(ask(&world, 0, "SELECT pg_promote()").await, "55000 recovery is not in progress");
    assert_eq!(ask(&world, 1, "SELECT pg_promote()").await, "t");
    assert_eq!(ask(&world, 1, "SELECT pg_is_in_recovery()").await, "f");
    ask(&world, 1, "CREATE ROLE here").await;
    assert_eq!(ask(&world, 0, "SELECT count(*) FROM pg_stat_replication").await, "0");
    assert_eq!(ask(&world, 0, "SELECT count(*) FROM pg_roles WHERE rolname = 'here'").await, "0");
    world.run_for(Duration::from_secs(5)).await;
    world.delete("Pod", "default", "db-1").expect("deleted");
    world.run_for(Duration::from_secs(60)).await;
    assert!(end(&world, 1).contains("NotAStandby"), "{}", end(&world, 1));
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_primary_that_lost_its_volume_is_another_database_to_its_standby() {
    let (world, driver) = up(2).await;
    let lost = volume(&world, 0);
    world.model(|model| model.volumes.clear(&lost, "pgdata"));
    world.delete("Pod", "default", "db-0").expect("deleted");
    settled(&world, 2).await;
    replicated::prepare(&world, 2).await;
    world.run_for(Duration::from_secs(30)).await;
    let words = log(&world, 1);
    let differs = "database system identifier differs between the primary and standby";
    assert!(words.contains(differs), "{words}");
    assert_eq!(ask(&world, 0, STREAMS).await, "");
    assert_eq!(ask(&world, 1, "SELECT 1").await, "1", "it still serves what it has");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn an_orderly_end_of_the_primary_loses_nothing_and_a_crash_may() {
    let (world, driver) = up(2).await;
    ask(&world, 0, "CREATE ROLE first").await;
    world.delete("Pod", "default", "db-0").expect("deleted");
    world.run_for(Duration::from_secs(2)).await;
    let seen = "SELECT count(*) FROM pg_roles WHERE rolname IN ('first', 'second')";
    assert_eq!(ask(&world, 1, seen).await, "1");
    settled(&world, 2).await;
    world.run_for(Duration::from_secs(10)).await;
    let lag = |c: &mut sim::external::postgres::Conditions| c.replaying = Duration::from_secs(9);
    world.disturb("default", "db-1", lag).expect("the standby runs");
    ask(&world, 0, "CREATE ROLE second").await;
    world.postgres("default", "db-0").expect("it runs").crash("PANIC");
    world.model(|_| ());
    world.run_for(Duration::from_secs(2)).await;
    assert_eq!(ask(&world, 1, seen).await, "1");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_lost_node_takes_its_standby_with_it_and_gives_it_back() {
    let world = World::new(4);
    let driver = world.spawn();
    for number in [2, 3] {
        let node = sim::world::node(&format!("node-{number}"), &format!("172.18.0.{number}0"));
        world.create(&node.to_string()).expect("a node");
    }
    world.apply(&set(1, "postgres:15", "")).expect("applied");
    settled(&world, 1).await;
    replicated::prepare(&world, 3).await;
    world.apply(&set(3, "postgres:15", "")).expect("applied");
    settled(&world, 3).await;
    let node = |ordinal: usize| {
        let pod = world.get("Pod", "default", &format!("db-{ordinal}")).expect("the pod");
        pod["spec"]["nodeName"].as_str().expect("a node").to_owned()
    };
    let lost = node(2);
    assert_ne!(lost, node(0), "the emptiest node wins");
    world.lose_node(&lost);
    let streams = "SELECT application_name FROM pg_stat_replication ORDER BY 1";
    world.run_for(Duration::from_secs(20)).await;
    assert_eq!(ask(&world, 0, streams).await, "db-1;db-2", "nobody has noticed yet");
    ask(&world, 0, "CREATE ROLE meanwhile").await;
    world.run_for(Duration::from_secs(120)).await;
    assert_eq!(ask(&world, 0, streams).await, "db-1");
    let slot = "SELECT active, wal_status FROM pg_replication_slots WHERE slot_name = 'slot_2'";
    assert_eq!(ask(&world, 0, slot).await, "f|reserved");
    let pod = world.get("Pod", "default", "db-2").expect("the pod stays for five minutes");
    let ready = pod["status"]["conditions"].as_array().expect("conditions").iter();
    assert!(ready.clone().any(|one| one["type"] == "Ready" && one["status"] == "False"));
    world.regain_node(&lost);
    world.run_for(Duration::from_secs(200)).await;
    assert_eq!(ask(&world, 0, streams).await, "db-1;db-2");
    let seen = "SELECT count(*) FROM pg_roles WHERE rolname = 'meanwhile'";
    assert_eq!(ask(&world, 2, seen).await, "1");
    driver.abort();
}
