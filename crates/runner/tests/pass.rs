//! Passes of a toy controller against the simulated API server: what the runner promises to every
//! controller, under conflicts, refusals, panics, cut watches and crashes.

mod toy;

use std::time::Duration;

use runner::Limits;
use serde_json::json;
use sim::faults::{Effect, Match, Often, Rule};
use toy::{Bench, simulate, wait};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_child_is_made_changed_and_repaired_and_then_nothing_is_written() {
    simulate(|| async {
        let bench = Bench::new();
        let operator = bench.operator(Limits::default());
        bench.toy("a", json!({"text": "one"}));
        assert!(bench.reaches("a", "Ready", MINUTE).await);
        assert_eq!(bench.text("a"), "one");
        bench.toy("a", json!({"text": "two"}));
        assert!(wait(&bench, 2 * MINUTE, || bench.text("a") == "two").await);
        bench.world.delete("ConfigMap", "default", "a").expect("deletable");
        assert!(wait(&bench, 2 * MINUTE, || bench.text("a") == "two").await);
        assert!(bench.reaches("a", "Ready", MINUTE).await);
        bench.world.run_for(MINUTE).await;
        let before = bench.writes();
        bench.world.run_for(Duration::from_secs(36_000)).await;
        assert_eq!(bench.writes(), before, "a settled resource costs no write");
        assert!(operator.health.is_ready());
    });
}

#[test]
fn g_05_a_panic_is_told_in_the_status_and_harms_nobody_else() {
    simulate(|| async {
        let bench = Bench::new();
        let operator = bench.operator(Limits::default());
        bench.toy("bad", json!({"text": "x", "panics": true}));
        for index in 0..50 {
            bench.toy(&format!("good-{index}"), json!({"text": "fine"}));
        }
        for index in 0..50 {
            assert!(bench.reaches(&format!("good-{index}"), "Ready", MINUTE).await, "{index}");
        }
        assert!(bench.reaches("bad", "Troubled", MINUTE).await);
        assert_eq!(bench.detail("bad"), "InternalError");
        assert!(operator.metrics.text().contains("steadfast_panics_total"));
        assert!(operator.health.is_alive());
        bench.toy("bad", json!({"text": "better", "panics": false}));
        assert!(bench.reaches("bad", "Ready", 2 * MINUTE).await, "the edit heals it");
    });
}

#[test]
fn g_17_a_resource_that_does_not_parse_is_told_so_and_the_others_are_served() {
    simulate(|| async {
        let bench = Bench::new();
        let _operator = bench.operator(Limits::default());
        bench.toy("bad", json!({"text": {"not": "text"}}));
        bench.toy("good", json!({"text": "fine"}));
        assert!(bench.reaches("good", "Ready", MINUTE).await);
        assert!(bench.reaches("bad", "Unreadable", MINUTE).await);
        bench.toy("bad", json!({"text": "better"}));
        assert!(bench.reaches("bad", "Ready", MINUTE).await);
    });
}

#[test]
fn g_24_a_missing_permission_is_named_and_heals_without_a_restart() {
    simulate(|| async {
        let bench = Bench::new();
        let denied = bench.world.cluster.with(|core| {
            core.faults.add(Rule::new(
                Match::verbs(&["patch"]).on("", "configmaps"),
                Often::Always,
                Effect::Deny { message: "configmaps is forbidden".to_owned() },
            ))
        });
        let _operator = bench.operator(Limits::default());
        bench.toy("a", json!({"text": "one"}));
        assert!(bench.reaches("a", "Troubled", MINUTE).await);
        let detail = bench.detail("a");
        assert!(detail.contains("patch ConfigMap default/a"), "{detail}");
        assert!(detail.contains("forbidden"), "{detail}");
        bench.world.run_for(10 * MINUTE).await;
        bench.world.cluster.with(|core| core.faults.remove(denied));
        assert!(bench.reaches("a", "Ready", 2 * MINUTE).await, "{}", bench.detail("a"));
    });
}

#[test]
fn g_20_conflicts_alone_are_no_trouble() {
    simulate(|| async {
        let bench = Bench::new();
        bench.world.cluster.with(|core| {
            core.faults.add(Rule::new(
                Match::writes().by("toy-operator"),
                Often::Every(2),
                Effect::Respond { code: 409, retry_after: None },
            ));
        });
        let _operator = bench.operator(Limits::default());
        bench.toy("a", json!({"text": "one"}));
        assert!(bench.reaches("a", "Ready", 10 * MINUTE).await);
        assert_eq!(bench.detail("a"), "");
    });
}

#[test]
fn g_21_the_server_is_left_alone_for_as_long_as_it_asks() {
    simulate(|| async {
        let bench = Bench::new();
        bench.world.cluster.with(|core| {
            core.faults.add(Rule::new(
                Match::verbs(&["patch"]).on("", "configmaps"),
                Often::First(1),
                Effect::Respond { code: 429, retry_after: Some(300) },
            ));
        });
        let _operator = bench.operator(Limits::default());
        bench.toy("a", json!({"text": "one"}));
        bench.toy("b", json!({"text": "two"}));
        assert!(
            wait(&bench, 2 * MINUTE, || bench.text("a").len() + bench.text("b").len() == 3).await
        );
        bench.world.run_for(Duration::from_secs(200)).await;
        assert_eq!(bench.text("a").len() + bench.text("b").len(), 3, "one is held back");
        bench.world.run_for(Duration::from_secs(200)).await;
        assert_eq!(bench.text("a").len() + bench.text("b").len(), 6);
    });
}

#[test]
fn g_14_g_16_cut_and_expired_watches_are_taken_up_again() {
    simulate(|| async {
        let bench = Bench::new();
        let _operator = bench.operator(Limits::default());
        bench.toy("a", json!({"text": "one"}));
        assert!(bench.reaches("a", "Ready", MINUTE).await);
        bench.world.cluster.with(|core| {
            core.faults.add(Rule::new(Match::verbs(&["watch"]), Often::First(6), Effect::Gone));
        });
        bench.world.cluster.cut_watches();
        bench.toy("a", json!({"text": "two"}));
        bench.world.delete("ConfigMap", "default", "a").expect("deletable");
        assert!(wait(&bench, 2 * MINUTE, || bench.text("a") == "two").await);
    });
}

#[test]
fn g_66_a_noisy_resource_does_not_delay_the_calm_ones() {
    simulate(|| async {
        let bench = Bench::new();
        let _operator = bench.operator(Limits { concurrency: 1, ..Limits::default() });
        bench.toy("failing", json!({"text": "x", "panics": true}));
        for round in 0..100 {
            bench.toy("noisy", json!({"text": format!("round {round}")}));
            if round == 50 {
                bench.toy("calm", json!({"text": "quiet"}));
            }
            bench.world.run_for(Duration::from_millis(100)).await;
        }
        assert_eq!(bench.state("calm"), "Ready");
        assert!(
            wait(&bench, 2 * MINUTE, || bench.text("noisy") == "round 99").await,
            "the last edit wins"
        );
    });
}

#[test]
fn a_graceful_stop_ends_and_a_later_start_goes_on() {
    simulate(|| async {
        let bench = Bench::new();
        let operator = bench.operator(Limits::default());
        bench.toy("a", json!({"text": "one"}));
        assert!(bench.reaches("a", "Ready", MINUTE).await);
        operator.stop.cancel();
        tokio::time::timeout(MINUTE, operator.task).await.expect("in time").expect("no panic");
        let writes = operator.handle.writes();
        bench.toy("a", json!({"text": "two"}));
        bench.world.run_for(MINUTE).await;
        assert_eq!(bench.text("a"), "one", "nobody is there to act");
        assert_eq!(operator.handle.writes(), writes);
        let _second = bench.operator(Limits::default());
        assert!(wait(&bench, 2 * MINUTE, || bench.text("a") == "two").await);
    });
}

#[test]
fn g_06_a_lost_reply_makes_no_second_object_and_no_second_write() {
    simulate(|| async {
        let bench = Bench::new();
        bench.world.cluster.with(|core| {
            core.faults.add(Rule::new(
                Match::writes().by("toy-operator"),
                Often::First(2),
                Effect::LostReply,
            ));
        });
        let _operator = bench.operator(Limits::default());
        bench.toy("a", json!({"text": "one"}));
        assert!(bench.reaches("a", "Ready", 5 * MINUTE).await);
        assert_eq!(
            bench
                .world
                .list("ConfigMap", "default")
                .iter()
                .filter(|c| c["metadata"]["name"] == "a")
                .count(),
            1
        );
    });
}
