//! Conditions: transition times move when they must and stay when they must.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use phased::condition::{Truth, Wanted, settle, whole_second};

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn wanted(kind: &'static str, status: Truth, message: &str) -> Wanted {
    Wanted { kind, status, reason: "Because", message: message.to_owned() }
}

fn first(existing: &[Condition], status: Truth, message: &str, now: &str) -> Condition {
    settle(existing, vec![wanted("Ready", status, message)], 4, time(now)).remove(0)
}

#[test]
fn a_new_condition_begins_now_in_whole_seconds() {
    let ready = first(&[], Truth::False, "text", "2026-01-01T00:00:00.9Z");
    assert_eq!(ready.last_transition_time, Time(time("2026-01-01T00:00:00Z")));
    assert_eq!((ready.type_.as_str(), ready.status.as_str()), ("Ready", "False"));
    assert_eq!((ready.reason.as_str(), ready.message.as_str()), ("Because", "text"));
    assert_eq!(ready.observed_generation, Some(4));
}

#[test]
fn the_time_moves_only_with_the_status() {
    let all = [Truth::True, Truth::False, Truth::Unknown];
    for before in all {
        for after in all {
            let existing = first(&[], before, "old", "2026-01-01T00:00:00Z");
            let now = first(&[existing], after, "new", "2026-01-02T00:00:00Z");
            let expected =
                if before == after { "2026-01-01T00:00:00Z" } else { "2026-01-02T00:00:00Z" };
            assert_eq!(now.last_transition_time, Time(time(expected)), "{before:?} to {after:?}");
            assert_eq!(now.message, "new");
        }
    }
}

#[test]
fn the_same_story_told_later_is_the_same_condition() {
    let before = first(&[], Truth::True, "text", "2026-01-01T00:00:00.5Z");
    let after = first(std::slice::from_ref(&before), Truth::True, "text", "2026-02-01T12:34:56.7Z");
    assert_eq!(before, after);
}

#[test]
fn types_are_settled_apart_and_foreign_ones_are_left_out() {
    let foreign = Condition {
        type_: "Theirs".into(),
        ..first(&[], Truth::True, "text", "2025-01-01T00:00:00Z")
    };
    let old = first(&[], Truth::True, "text", "2026-01-01T00:00:00Z");
    let settled = settle(
        &[foreign, old],
        vec![wanted("Degraded", Truth::True, ""), wanted("Ready", Truth::True, "")],
        4,
        time("2026-01-03T00:00:00Z"),
    );
    let times: Vec<(&str, Timestamp)> =
        settled.iter().map(|c| (c.type_.as_str(), c.last_transition_time.0)).collect();
    assert_eq!(
        times,
        [("Degraded", time("2026-01-03T00:00:00Z")), ("Ready", time("2026-01-01T00:00:00Z"))]
    );
}

#[test]
fn a_message_is_cut_between_characters() {
    let exact = "x".repeat(32_768);
    assert_eq!(first(&[], Truth::True, &exact, "2026-01-01T00:00:00Z").message, exact);
    let long = format!("{}ä tail", "x".repeat(32_767));
    let cut = first(&[], Truth::True, &long, "2026-01-01T00:00:00Z").message;
    assert_eq!(cut, "x".repeat(32_767));
}

#[test]
fn truth_is_spelled_as_the_api_does() {
    assert_eq!(Truth::from_bool(true).as_str(), "True");
    assert_eq!(Truth::from_bool(false).as_str(), "False");
    assert_eq!(Truth::Unknown.as_str(), "Unknown");
}

#[test]
fn whole_seconds_round_down_at_the_ends_of_time_too() {
    assert_eq!(whole_second(time("2026-01-01T00:00:59.999Z")), time("2026-01-01T00:00:59Z"));
    assert!(whole_second(Timestamp::MAX) <= Timestamp::MAX);
    assert!(whole_second(Timestamp::MIN) >= Timestamp::MIN);
}
