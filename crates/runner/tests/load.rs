//! Many resources, slow answers, full queues, and what is left when all are gone (fault catalogue,
//! ids in the names).

mod toy;

use std::time::Duration;

use runner::Limits;
use serde_json::json;
use sim::faults::{Effect, Match, Often};
use toy::{Bench, Operator, simulate, wait};

const MINUTE: Duration = Duration::from_secs(60);

fn ready(bench: &Bench) -> usize {
    bench.world.cluster.with(|core| {
        let toys = core.store.list("example.com", "toys", Some("default"));
        toys.filter(|(_, toy)| toy["status"]["state"] == "Ready").count()
    })
}

fn events() -> Match {
    Match::verbs(&["create"]).on("events.k8s.io", "events")
}

#[test]
fn g_66_g_75_resources_that_wait_for_an_answer_hold_nobody_up() {
    simulate(|| async {
        let bench = Bench::new();
        for number in 0..100 {
            bench.toy(&format!("hangs-{number}"), json!({"text": "x", "asks": 100}));
        }
        let _operator = bench.operator(Limits { concurrency: 4, ..Limits::default() });
        bench.world.run_for(MINUTE).await;
        bench.toy("calm", json!({"text": "quiet"}));
        assert!(bench.reaches("calm", "Ready", Duration::from_secs(1)).await, "at once");
        assert!(bench.reaches("hangs-99", "Unanswered", 2 * MINUTE).await, "each has its turn");
    });
}

#[test]
fn g_66_g_75_writes_that_hang_for_some_hold_up_no_others() {
    simulate(|| async {
        let bench = Bench::new();
        for number in 0..40 {
            bench.toy(&format!("slow-{number}"), json!({"text": "x"}));
            let child = Match::verbs(&["patch"]).on("", "configmaps");
            let slow = Effect::Slow(Duration::from_secs(29));
            bench.fault(child.named(&format!("slow-{number}")), Often::Always, slow);
        }
        let _operator = bench.operator(Limits { concurrency: 4, ..Limits::default() });
        bench.toy("calm", json!({"text": "quiet"}));
        assert!(bench.reaches("calm", "Ready", MINUTE / 2).await, "{}", bench.state("calm"));
        assert!(wait(&bench, 2 * MINUTE, || ready(&bench) == 41).await, "{}", ready(&bench));
    });
}

#[test]
fn g_67_full_queues_stall_nobody_and_what_is_dropped_is_counted() {
    simulate(|| async {
        const MANY: usize = 1400;
        let bench = Bench::of_api_only();
        let operator = bench.operator(Limits::default());
        bench.world.run_for(MINUTE).await;
        bench.fault(events(), Often::Always, slow(3000));
        bench.fault(Match::writes().on("", "configmaps"), Often::Always, slow(300));
        for number in 0..MANY {
            bench.toy(&format!("t{number}"), json!({"text": "one"}));
        }
        bench.world.run_for(Duration::from_secs(1)).await;
        assert!(operator.metric("steadfast_queue_depth") > 1200.0, "they wait in the queue");
        assert!(wait(&bench, 10 * MINUTE, || ready(&bench) == MANY).await, "{}", ready(&bench));
        // The outbox goes on with what it holds.
        bench.world.run_for(Duration::from_secs(2 * 3600)).await;
        let published = bench.requests("create", "/events");
        let dropped = operator.metric("steadfast_events_dropped_total");
        assert!(dropped > 200.0, "the queue of Events was full: {dropped}");
        assert_eq!(published as f64 + dropped, MANY as f64, "each was published or counted");
        assert_eq!(operator.metric("steadfast_unsettled"), 0.0);
    });
}

fn slow(milliseconds: u64) -> Effect {
    Effect::Slow(Duration::from_millis(milliseconds))
}

#[test]
fn g_67_a_stop_waits_for_queued_events_only_so_long() {
    simulate(|| async {
        let bench = Bench::new();
        let operator = bench.operator(Limits::default());
        bench.world.run_for(MINUTE).await;
        bench.fault(events(), Often::Always, Effect::Timeout(Duration::from_secs(20)));
        for number in 0..50 {
            bench.toy(&format!("t{number}"), json!({"text": "one"}));
        }
        assert!(wait(&bench, MINUTE, || ready(&bench) == 50).await);
        operator.stop.cancel();
        let Operator { task, metrics, .. } = operator;
        let ended = tokio::time::timeout(Duration::from_secs(6), task).await;
        ended.expect("it ends in time").expect("it does not panic");
        let told = metrics.text();
        assert!(told.contains("steadfast_events_dropped_total 50"), "{told}");
    });
}

#[test]
fn g_70_thousands_that_came_and_went_leave_nothing_behind() {
    simulate(|| async {
        let bench = Bench::of_api_only();
        let operator = bench.operator(Limits::default());
        bench.toy("stays", json!({"text": "one"}));
        assert!(bench.reaches("stays", "Ready", MINUTE).await);
        let mut first = None;
        for round in 0..8 {
            come_and_go(&bench, round).await;
            let left = Left::of(&operator);
            assert_eq!(&left, first.get_or_insert_with(|| left.clone()), "round {round}");
        }
        let left = first.expect("there were rounds");
        assert_eq!(left.known, 2.0, "one toy and its child: {left:?}");
        assert_eq!((left.waiting, left.unsettled), (1.0, 0.0), "{left:?}");
    });
}

/// Many toys that come, fail, heal, change and go, and their children with them.
async fn come_and_go(bench: &Bench, round: usize) {
    let refused = Effect::Respond { code: 500, retry_after: Some(1) };
    bench.fault(Match::writes().on("", "configmaps"), Often::First(50), refused);
    let name = |number: usize| format!("r{round}-{number}");
    for number in 0..250 {
        bench.toy(&name(number), json!({"text": "one"}));
    }
    assert!(wait(bench, 5 * MINUTE, || ready(bench) == 251).await, "{}", ready(bench));
    for number in 0..250 {
        bench.toy(&name(number), json!({"text": "two"}));
        if number % 3 == 0 {
            bench.world.delete("Toy", "default", &name(number)).expect("deletable");
        }
    }
    bench.world.run_for(Duration::from_secs(1)).await;
    for number in (0..250).filter(|number| number % 3 != 0) {
        bench.world.delete("Toy", "default", &name(number)).expect("deletable");
    }
    bench.world.run_for(MINUTE).await;
    for number in 0..250 {
        bench.world.delete("ConfigMap", "default", &name(number)).expect("deletable");
    }
    bench.world.run_for(5 * MINUTE).await;
}

/// What a running operator holds.
#[derive(Clone, Debug, PartialEq)]
struct Left {
    known: f64,
    waiting: f64,
    unsettled: f64,
    series: usize,
    tasks: usize,
}

impl Left {
    fn of(operator: &Operator) -> Self {
        Self {
            known: operator.metric("steadfast_known_objects"),
            waiting: operator.metric("steadfast_queue_depth"),
            unsettled: operator.metric("steadfast_unsettled"),
            series: operator.metrics.text().lines().count(),
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
        }
    }
}
