//! First bring-up on the simulated cluster: six phases in order in status, Events and log, few
//! writes, and the same history for the same seed.
//!
//! Everything here runs under virtual time.

mod support;

use support::history::History;
use support::logs::Logs;
use support::{Bench, LONG, NAME, TEST_DB, login, replay, rules, simulate};

/// The phases of the exercise, in order.
const PHASES: [&str; 6] =
    ["Pending", "Provisioning", "Configuring", "Deploying", "Verifying", "Ready"];

#[test]
fn six_phases_appear_in_order_in_status_events_and_log() {
    simulate(|| async {
        let (logs, _guard) = Logs::capture(tracing::Level::INFO);
        let bench = Bench::new(1);
        rules::install(&bench.world);
        let history = History::of(&bench.world, NAME);
        let operator = bench.operator();
        bench.apply(TEST_DB);
        bench.settle(NAME).await;
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        rules::hold(&bench.world);
        assert!(!operator.ended());
        assert_eq!(history.phases(), PHASES);
        let events: Vec<String> = bench
            .world
            .events("default", NAME)
            .into_iter()
            .filter(|(reason, _)| reason == "PhaseChanged")
            .filter_map(|(_, message)| Some(message.split(": ").next()?.to_owned()))
            .collect();
        let mut moves = vec!["(new) -> Pending".to_owned()];
        moves.extend(PHASES.windows(2).map(|pair| format!("{} -> {}", pair[0], pair[1])));
        let mut sorted = events.clone();
        sorted.sort();
        let mut wanted = moves.clone();
        wanted.sort();
        assert_eq!(sorted, wanted, "one Event a move");
        let lines = logs.lines_with("STATE TRANSITION");
        assert_eq!(lines.len(), moves.len(), "{lines:#?}");
        for (line, pair) in lines.iter().skip(1).zip(PHASES.windows(2)) {
            assert!(line.contains(&format!("{} -> {}", pair[0], pair[1])), "{line}");
            assert!(line.contains("reason="), "{line}");
        }
    });
}

#[test]
fn bring_up_takes_at_most_twenty_writes_and_the_login_works() {
    simulate(|| async {
        let (bench, operator) = Bench::with_test_db(2).await;
        let writes = bench.writes();
        println!("bring-up: {} API writes besides Events", writes.len());
        assert!(writes.len() <= 20, "{} writes: {writes:#?}", writes.len());
        assert_eq!(
            operator.tap.said().len(),
            2,
            "a role and a database: {:?}",
            operator.tap.said()
        );
        let wrong = login::login(&bench.world, NAME, ("admin", "wrong", "mydb")).await;
        assert!(wrong.is_err_and(|said| said.starts_with("28P01")));
        login::write_rows(&bench.world).await;
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
        let database = bench.database(NAME).expect("it exists");
        let status = &database["status"];
        assert_eq!(status["secretName"], "test-db-credentials");
        assert_eq!(status["endpoint"], "test-db.default.svc.cluster.local:5432");
        assert_eq!(status["readyReplicas"], 1);
        assert_eq!(status["primary"], "test-db-0");
    });
}

async fn trace_of(seed: u64) -> (String, u64) {
    let (bench, operator) = Bench::with_test_db(seed).await;
    bench.edit(|database| database["spec"]["parameters"] = serde_json::json!({"work_mem": "8MB"}));
    bench.settle(NAME).await;
    bench.world.delete("Service", "default", NAME).expect("deleted");
    tokio::time::sleep(LONG).await;
    let trace = bench.world.cluster.with(|core| core.faults.trace());
    operator.kill();
    (trace, bench.world.digest())
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    let trace = replay::byte_for_byte(trace_of);
    println!("one seed, one history: {} requests", trace.lines().count());
}
