//! Retry and progress ledgers across clock jumps, restarts and many attempts; wake-ups; digests.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use phased::deadline::{Progress, advance, deadline};
use phased::ladder::Finding;
use phased::retry::{Retry, after_failure, delay_seconds, is_due};
use phased::{Reason, Wake, digest};
use proptest::prelude::*;
use serde_json::json;

static REASON: Reason = Reason { name: "Because", meaning: "m", remedy: "r" };

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().expect("a time")
}

fn after(seconds: i64) -> Timestamp {
    start().checked_add(SignedDuration::from_secs(seconds)).expect("a time")
}

fn failed(before: Option<&Retry>, now: Timestamp) -> Retry {
    after_failure(before, &Finding::new(&REASON, "it went wrong"), now)
}

#[test]
fn delays_double_from_one_minute_to_ten() {
    let delays: Vec<i64> = (1..=7).map(delay_seconds).collect();
    assert_eq!(delays, [60, 120, 240, 480, 600, 600, 600]);
    assert_eq!(delay_seconds(0), 60);
    assert_eq!(delay_seconds(u32::MAX), 600);
}

#[test]
fn a_row_of_failures_is_counted_and_each_is_due_after_its_delay() {
    let mut ledger: Option<Retry> = None;
    let mut now = start();
    for (attempt, delay) in [(1, 60), (2, 120), (3, 240), (4, 480), (5, 600), (6, 600)] {
        let retry = failed(ledger.as_ref(), now);
        assert_eq!(retry.attempts, attempt);
        assert_eq!((retry.reason.as_str(), retry.message.as_str()), ("Because", "it went wrong"));
        assert_eq!(retry.last_failure, Time(now));
        let next = now.checked_add(SignedDuration::from_secs(delay)).expect("a time");
        assert_eq!(retry.next_try, Time(next));
        assert!(!is_due(&retry, now), "not at once");
        assert!(!is_due(&retry, next.checked_sub(SignedDuration::from_secs(1)).expect("a time")));
        assert!(is_due(&retry, next));
        now = next;
        ledger = Some(retry);
    }
}

#[test]
fn a_ledger_survives_being_stored() {
    let retry = failed(None, after(0).checked_add(SignedDuration::from_millis(700)).expect("time"));
    let stored = serde_json::to_value(&retry).expect("plain data");
    assert_eq!(stored["lastFailure"], json!("2026-01-01T00:00:00Z"));
    assert_eq!(stored["nextTry"], json!("2026-01-01T00:01:00Z"));
    let read: Retry = serde_json::from_value(stored).expect("the same type");
    assert_eq!(read, retry);
}

#[test]
fn a_clock_that_jumps_back_cannot_hold_a_retry() {
    let retry = failed(None, after(86_400));
    assert!(is_due(&retry, after(0)), "a day back");
    assert!(is_due(&retry, after(86_399)), "a second back");
    assert!(!is_due(&retry, after(86_401)));
    assert!(is_due(&retry, after(10 * 86_400)), "a clock that jumps ahead lets it go too");
}

#[test]
fn attempts_and_times_do_not_overflow() {
    let last = Retry { attempts: u32::MAX, ..failed(None, start()) };
    let next = failed(Some(&last), Timestamp::MAX);
    assert_eq!(next.attempts, u32::MAX);
    assert_eq!(next.next_try, Time(Timestamp::MAX));
}

#[test]
fn only_a_change_of_the_mark_is_progress() {
    let first = advance(None, "0/3", start());
    assert_eq!(first, Progress { mark: "0/3".into(), since: Time(start()) });
    let same = advance(Some(&first), "0/3", after(500));
    assert_eq!(same, first, "the ledger does not change because time passed");
    let moved = advance(Some(&same), "1/3", after(500));
    assert_eq!(moved, Progress { mark: "1/3".into(), since: Time(after(500)) });
    let back = advance(Some(&moved), "0/3", after(600));
    assert_eq!(back.since, Time(after(600)), "a step back is a change as well");
}

#[test]
fn a_stall_begins_when_patience_ends() {
    let progress = advance(None, "0/3", after(10));
    assert_eq!(deadline(&progress, 600), after(610));
    assert_eq!(deadline(&progress, 0), after(10));
    assert_eq!(deadline(&progress, i64::MAX), Timestamp::MAX);
}

#[test]
fn a_mark_from_the_future_starts_again() {
    let ahead = advance(None, "0/3", after(86_400));
    let now = advance(Some(&ahead), "0/3", start());
    assert_eq!(now.since, Time(start()), "a clock set back cannot postpone the deadline");
}

#[test]
fn wake_ups_count_from_the_snapshot() {
    assert_eq!(Wake::after(start(), 30), Wake::At(after(30)));
    assert_eq!(Wake::after(start(), -30), Wake::At(after(-30)));
    assert_eq!(Wake::after(Timestamp::MAX, 1), Wake::OnChange);
}

#[test]
fn digests_are_the_same_in_every_release() {
    // Changing one of these restarts pods and rewrites every child of every user.
    let golden = [
        (json!(null), "74234e98afe7498fb5daf1f3"),
        (json!({}), "44136fa355b3678a1146ad16"),
        (json!({"b": [1, 2.5, "ü", null], "a": {"d": true, "c": ""}}), GOLDEN_NESTED),
    ];
    for (value, expected) in golden {
        assert_eq!(digest::of(&value), expected, "{value}");
    }
}

/// SHA-256 of `{"a":{"c":"","d":true},"b":[1,2.5,"ü",null]}`, twelve bytes.
const GOLDEN_NESTED: &str = "81a526927d9d2458232352db";

#[test]
fn digests_tell_values_apart() {
    let values =
        [json!(1), json!("1"), json!([1]), json!({"a": 1}), json!({"a": "1"}), json!(null)];
    let digests: std::collections::BTreeSet<String> = values.iter().map(digest::of).collect();
    assert_eq!(digests.len(), values.len());
    assert_ne!(digest::of(&json!([1, 2])), digest::of(&json!([2, 1])), "order of lists counts");
}

fn wakes() -> impl Strategy<Value = Wake> {
    prop_oneof![
        Just(Wake::Now),
        Just(Wake::OnChange),
        (0_i64..1000).prop_map(|second| Wake::At(after(second))),
    ]
}

proptest! {
    #[test]
    fn the_earliest_wake_up_obeys_the_laws(a in wakes(), b in wakes(), c in wakes()) {
        let earliest = |x: &Wake, y: &Wake| x.clone().earliest(y.clone());
        prop_assert_eq!(earliest(&a, &b), earliest(&b, &a));
        prop_assert_eq!(earliest(&earliest(&a, &b), &c), earliest(&a, &earliest(&b, &c)));
        prop_assert_eq!(earliest(&a, &a), a.clone());
        prop_assert_eq!(earliest(&a, &Wake::OnChange), a.clone());
        prop_assert_eq!(earliest(&a, &Wake::Now), Wake::Now);
    }

    #[test]
    fn a_retry_waits_at_most_the_longest_delay(attempts in 0..u32::MAX, jump in -100_000_i64..100_000) {
        let retry = failed(Some(&Retry { attempts, ..failed(None, start()) }), start());
        let now = after(jump);
        let longest_is_over = !(0..phased::retry::LONGEST_DELAY_SECONDS).contains(&jump);
        prop_assert!(!longest_is_over || is_due(&retry, now));
        prop_assert!(is_due(&retry, now) || retry.next_try.0 > now);
    }
}
