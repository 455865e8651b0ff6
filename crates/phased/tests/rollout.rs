//! Histories of a StatefulSet's status, generation first.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use phased::rollout::{Rollout, stateful_set};

/// A set of `wanted` replicas at `generation`, without a status.
fn set(generation: i64, wanted: Option<i32>) -> StatefulSet {
    StatefulSet {
        metadata: ObjectMeta { generation: Some(generation), ..ObjectMeta::default() },
        spec: Some(StatefulSetSpec { replicas: wanted, ..StatefulSetSpec::default() }),
        status: None,
    }
}

/// Observed generation, replicas, ready, updated, current and update revision.
type Seen = (i64, i32, Option<i32>, Option<i32>, &'static str, &'static str);

fn with(mut set: StatefulSet, seen: Seen) -> StatefulSet {
    let (observed, replicas, ready, updated, current, update) = seen;
    set.status = Some(StatefulSetStatus {
        observed_generation: Some(observed),
        replicas,
        ready_replicas: ready,
        updated_replicas: updated,
        current_revision: Some(current.to_owned()),
        update_revision: Some(update.to_owned()),
        ..StatefulSetStatus::default()
    });
    set
}

/// How a set stands, in one word.
fn word(set: &StatefulSet) -> &'static str {
    match stateful_set(set) {
        Rollout::Unseen => "unseen",
        Rollout::Moving { .. } => "moving",
        Rollout::Complete => "complete",
    }
}

#[test]
fn a_bring_up() {
    assert_eq!(word(&set(1, Some(3))), "unseen", "the controller has not written a status");
    let history: [(Seen, &str); 5] = [
        ((0, 0, None, None, "", ""), "unseen"),
        ((1, 0, None, None, "r1", "r1"), "moving"),
        ((1, 1, None, Some(1), "r1", "r1"), "moving"),
        ((1, 3, Some(2), Some(3), "r1", "r1"), "moving"),
        ((1, 3, Some(3), Some(3), "r1", "r1"), "complete"),
    ];
    for (seen, expected) in history {
        assert_eq!(word(&with(set(1, Some(3)), seen)), expected, "{seen:?}");
    }
}

#[test]
fn an_update() {
    let history: [(Seen, &str); 7] = [
        // All is ready, but for the generation before ours.
        ((1, 3, Some(3), Some(3), "r1", "r1"), "unseen"),
        // Ours is seen; the old pods are all ready, none is updated.
        ((2, 3, Some(3), None, "r1", "r2"), "moving"),
        ((2, 3, Some(2), Some(1), "r1", "r2"), "moving"),
        ((2, 2, Some(2), Some(2), "r1", "r2"), "moving"),
        // Every pod is updated and ready; the revision is not current yet.
        ((2, 3, Some(3), Some(3), "r1", "r2"), "moving"),
        ((2, 3, Some(3), Some(3), "r2", "r2"), "complete"),
        // A pod is lost later.
        ((2, 3, Some(2), Some(3), "r2", "r2"), "moving"),
    ];
    for (seen, expected) in history {
        assert_eq!(word(&with(set(2, Some(3)), seen)), expected, "{seen:?}");
    }
}

#[test]
fn scaling() {
    let table: [(Option<i32>, Seen, &str); 6] = [
        (Some(1), (1, 3, Some(3), Some(3), "r1", "r1"), "moving"),
        (Some(1), (1, 1, Some(1), Some(1), "r1", "r1"), "complete"),
        (Some(5), (1, 3, Some(3), Some(3), "r1", "r1"), "moving"),
        (Some(0), (1, 1, None, Some(1), "r1", "r1"), "moving"),
        (Some(0), (1, 0, None, None, "r1", "r1"), "complete"),
        (None, (1, 1, Some(1), Some(1), "r1", "r1"), "complete"),
    ];
    for (wanted, seen, expected) in table {
        assert_eq!(word(&with(set(1, wanted), seen)), expected, "{wanted:?} {seen:?}");
    }
}

#[test]
fn a_later_generation_seen_by_the_controller_counts() {
    // Our copy may be older than the status's: the status then speaks of more than we wrote.
    assert_eq!(word(&with(set(2, Some(1)), (3, 1, Some(1), Some(1), "r", "r"))), "complete");
}

#[test]
fn the_mark_changes_with_every_kind_of_progress_and_with_nothing_else() {
    let mark = |set: &StatefulSet| match stateful_set(set) {
        Rollout::Moving { mark, .. } => Some(mark),
        Rollout::Unseen | Rollout::Complete => None,
    };
    let base: Seen = (1, 2, Some(1), Some(1), "r1", "r2");
    let at_base = mark(&with(set(1, Some(3)), base)).expect("it is moving");
    assert_eq!(mark(&with(set(1, Some(3)), base)).as_ref(), Some(&at_base));
    let progress: [(i64, Seen); 5] = [
        (1, (1, 3, Some(1), Some(1), "r1", "r2")),
        (1, (1, 2, Some(2), Some(1), "r1", "r2")),
        (1, (1, 2, Some(1), Some(2), "r1", "r2")),
        (1, (1, 2, Some(1), Some(1), "r1", "r3")),
        (2, (2, 2, Some(1), Some(1), "r1", "r2")),
    ];
    for (generation, seen) in progress {
        let moved = mark(&with(set(generation, Some(3)), seen)).expect("it is moving");
        assert_ne!(moved, at_base, "{seen:?}");
    }
}

#[test]
fn the_message_counts_for_people() {
    let seen = (1, 3, Some(1), Some(2), "r1", "r2");
    let expected = "1 of 3 ready, 2 of 3 updated to revision r2";
    let Rollout::Moving { message, .. } = stateful_set(&with(set(1, Some(3)), seen)) else {
        unreachable!("the revisions differ")
    };
    assert_eq!(message, expected);
}
