//! Lists and watches that go wrong: what was missed is taken up within a bound, nothing is taken for
//! gone that is not, and nothing is asked for in a hurry (fault catalogue, ids in the names).

mod toy;

use std::time::Duration;

use runner::Limits;
use runner::patience::SILENCE;
use serde_json::json;
use sim::faults::{Effect, Match, Often};
use toy::other::{OTHER_CRD, OtherController};
use toy::{Bench, ToyController, simulate, wait};

const MINUTE: Duration = Duration::from_secs(60);
/// The longest delay between two attempts, jitter included, and some work.
const DELAY: Duration = Duration::from_secs(75);

fn watches() -> Match {
    Match::verbs(&["watch"]).on("example.com", "toys")
}

fn lists() -> Match {
    Match::verbs(&["list"]).on("example.com", "toys")
}

#[test]
fn g_63_a_definition_that_comes_late_is_waited_for_and_holds_no_other_kind_up() {
    simulate(|| async {
        let bench = Bench::without_definition();
        let operator = bench.operator_of(Limits::default(), |runner| {
            runner.with::<ToyController>().with::<OtherController>()
        });
        bench.world.run_for(MINUTE).await;
        bench.world.apply(OTHER_CRD).expect("accepted");
        let other = json!({"apiVersion": "example.net/v1", "kind": "Other",
            "metadata": {"name": "o", "namespace": "default"}, "spec": {}});
        bench.world.apply(&other.to_string()).expect("accepted");
        let state = || {
            let other = bench.world.get("Other", "default", "o").unwrap_or_default();
            other["status"]["state"].as_str().unwrap_or_default().to_owned()
        };
        assert!(wait(&bench, DELAY, || state() == "Ready").await, "the other kind is served");
        bench.world.run_for(10 * MINUTE).await;
        assert!(!operator.health.is_ready() && operator.health.is_alive());
        assert_eq!(operator.health.waited_for(), "toy waits for the first list of Toy\n");
        assert!(operator.metrics.text().contains(r#"watch_errors_total{kind="Toy"}"#));
        let asked = bench.requests("list", "/toys");
        assert!((5..=25).contains(&asked), "{asked} lists in twelve minutes");
        bench.define();
        bench.toy("a", json!({"text": "one"}));
        assert!(bench.reaches("a", "Ready", DELAY).await, "taken up without a restart");
        assert!(operator.health.is_ready());
        assert_eq!(operator.health.waited_for(), "");
    });
}

#[test]
fn g_63_a_definition_that_goes_and_comes_back_is_taken_up_again() {
    simulate(|| async {
        let bench = Bench::new();
        let operator = bench.operator(Limits::default());
        bench.toy("a", json!({"text": "one"}));
        assert!(bench.reaches("a", "Ready", MINUTE).await);
        bench.world.delete("CustomResourceDefinition", "", "toys.example.com").expect("deletable");
        bench.world.run_for(MINUTE).await;
        let writes = bench.writes();
        bench.world.run_for(10 * MINUTE).await;
        assert_eq!(bench.writes(), writes, "nothing is made for what is gone");
        assert_eq!(bench.text("a"), "", "the child went with its owner");
        bench.define();
        bench.toy("a", json!({"text": "two"}));
        assert!(bench.reaches("a", "Ready", DELAY).await, "{}", bench.state("a"));
        assert_eq!(bench.text("a"), "two");
        assert!(operator.health.is_alive());
    });
}

#[test]
fn g_13_a_watch_that_says_nothing_and_does_not_end_is_noticed() {
    for after in [0, 1] {
        simulate(move || async move {
            let bench = Bench::new();
            let silent = bench.fault(watches(), Often::First(1), Effect::SilentWatch(after));
            let _operator = bench.operator(Limits::default());
            for (name, text) in [("a", "one"), ("b", "one"), ("a", "two")] {
                bench.world.run_for(MINUTE / 3).await;
                bench.toy(name, json!({"text": text}));
            }
            bench.world.run_for(MINUTE / 3).await;
            let fired = bench.world.cluster.with(|core| core.faults.fired(silent));
            assert_eq!(fired, 1, "it is silent");
            assert_ne!(bench.text("a"), "two", "and nobody else tells");
            let seen = || bench.text("a") == "two" && bench.text("b") == "one";
            assert!(wait(&bench, SILENCE + MINUTE, seen).await, "after {after} events");
        });
    }
}

#[test]
fn g_13_a_list_or_a_watch_that_is_never_answered_is_asked_for_again() {
    for asked in [lists(), watches()] {
        simulate(move || async move {
            let bench = Bench::new();
            let hour = Effect::Timeout(Duration::from_secs(3600));
            bench.fault(asked.clone(), Often::First(2), hour);
            let _operator = bench.operator(Limits::default());
            bench.world.run_for(MINUTE / 6).await;
            bench.toy("a", json!({"text": "one"}));
            assert!(bench.reaches("a", "Ready", 2 * MINUTE).await, "{:?}", asked.verbs);
        });
    }
}

#[test]
fn g_12_what_no_event_tells_of_is_found_by_the_next_list() {
    simulate(|| async {
        let bench = Bench::new();
        bench.fault(Match::verbs(&["watch"]), Often::Always, Effect::LoseEvents(1));
        let limits = Limits { resync: 10 * MINUTE, ..Limits::default() };
        bench.toy("a", json!({"text": "one"}));
        bench.toy("b", json!({"text": "one"}));
        let _operator = bench.operator(limits);
        assert!(
            bench.reaches("a", "Ready", MINUTE).await && bench.reaches("b", "Ready", MINUTE).await
        );
        bench.toy("a", json!({"text": "two"}));
        bench.toy("c", json!({"text": "new"}));
        bench.world.delete("Toy", "default", "b").expect("deletable");
        bench.world.run_for(MINUTE).await;
        assert_eq!(bench.text("a"), "one", "nothing was heard of it");
        let healed = || bench.text("a") == "two" && bench.text("c") == "new";
        assert!(wait(&bench, 12 * MINUTE, healed).await, "within one resync");
        let writes = bench.writes();
        bench.world.run_for(30 * MINUTE).await;
        assert_eq!(bench.writes(), writes, "lists that hold nothing new cost nothing");
        assert_eq!(bench.text("b"), "", "what is gone is not made again");
    });
}

#[test]
fn g_15_a_replica_that_is_behind_is_asked_at_a_bounded_pace_and_lists_fill_the_gap() {
    simulate(|| async {
        let bench = Bench::new();
        let _operator = bench.operator(Limits::default());
        bench.toy("a", json!({"text": "one"}));
        assert!(bench.reaches("a", "Ready", MINUTE).await);
        let behind = bench.fault(watches(), Often::Always, Effect::Stale(1_000_000));
        bench.world.cluster.cut_watches();
        bench.toy("a", json!({"text": "two"}));
        let asked = bench.requests("watch", "/toys");
        assert!(wait(&bench, 10 * MINUTE, || bench.text("a") == "two").await, "a list tells");
        bench.world.run_for(20 * MINUTE).await;
        let asked = bench.requests("watch", "/toys") - asked;
        assert!((10..=60).contains(&asked), "{asked} watches in at most thirty minutes");
        bench.world.cluster.with(|core| core.faults.remove(behind));
        bench.world.run_for(DELAY).await;
        bench.toy("a", json!({"text": "three"}));
        assert!(
            wait(&bench, MINUTE / 6, || bench.text("a") == "three").await,
            "it is watched again"
        );
    });
}

#[test]
fn g_14_g_68_a_list_whose_pages_expire_is_begun_again_and_loses_nothing() {
    simulate(|| async {
        let bench = Bench::of_api_only();
        for number in 0..1200 {
            bench.toy(&format!("t{number:04}"), json!({"text": "one"}));
        }
        bench.fault(lists(), Often::First(3), Effect::Slow(Duration::from_secs(5)));
        let _operator = bench.operator(Limits::default());
        // The first page is in; the second is asked for with a version that is gone by then.
        bench.world.run_for(Duration::from_secs(7)).await;
        bench.world.delete("Toy", "default", "t0003").expect("deletable");
        bench.toy("t0004", json!({"text": "two"}));
        bench.toy("t9999", json!({"text": "one"}));
        bench.world.cluster.with(|core| core.store.compact());
        let children = || {
            bench.world.cluster.with(|core| {
                let all = core.store.list("", "configmaps", Some("default"));
                all.filter(|(_, child)| child["data"]["text"].is_string()).count()
            })
        };
        assert!(wait(&bench, 5 * MINUTE, || children() >= 1200).await, "{}", children());
        let expired = bench.world.cluster.with(|core| {
            core.faults
                .log()
                .iter()
                .filter(|e| e.code == 410 && e.path.contains("continue="))
                .count()
        });
        assert_eq!(expired, 1, "a page expired");
        assert!(bench.reaches("t9999", "Ready", MINUTE).await);
        assert_eq!((bench.text("t0003").as_str(), bench.text("t0004").as_str()), ("", "two"));
        // A running operator lists again, and a page fails: nothing is taken for gone.
        bench.world.run_for(MINUTE).await;
        let writes = bench.writes();
        bench.fault(watches(), Often::First(1), Effect::Gone);
        let failing = Effect::Respond { code: 500, retry_after: None };
        let failed = bench.fault(lists(), Often::Nth(2), failing);
        bench.world.cluster.cut_watches();
        bench.world.run_for(5 * MINUTE).await;
        assert_eq!(bench.world.cluster.with(|core| core.faults.fired(failed)), 1);
        assert_eq!((bench.writes(), children()), (writes, 1200));
        bench.toy("t0005", json!({"text": "two"}));
        assert!(wait(&bench, MINUTE, || bench.text("t0005") == "two").await);
    });
}
