//! The status write of a pass, when the stored status is not already this one.
//!
//! Conditions of types that a controller does not write are somebody else's, and are left alone.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use phased::Live;
use phased::Reason;
use phased::condition::{Truth, Wanted, whole_second};
use phased::plan::StatusWrite;
use serde_json::Value;

/// The write, when the stored status is not already this one. `ours` are the types of conditions
/// that the controller writes.
pub(crate) fn write(root: &Live, status: Value, ours: &[&str]) -> Option<StatusWrite> {
    if without_others(root, ours) == Some(sorted(status.clone())) {
        return None;
    }
    Some(StatusWrite {
        status,
        uid: root.uid().to_owned(),
        resource_version: root.resource_version().to_owned(),
    })
}

fn without_others(root: &Live, ours: &[&str]) -> Option<Value> {
    let mut stored = root.value.get("status")?.clone();
    if let Some(conditions) = stored.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.retain(|c| c["type"].as_str().is_some_and(|t| ours.contains(&t)));
    }
    Some(sorted(stored))
}

/// Conditions are a keyed list: their order means nothing.
fn sorted(mut status: Value) -> Value {
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.sort_by_key(|c| c["type"].as_str().unwrap_or_default().to_owned());
    }
    status
}

/// A condition in the controller's words.
pub(crate) fn wanted(kind: &'static str, status: Truth, reason: &Reason, message: &str) -> Wanted {
    Wanted { kind, status, reason: reason.name, message: message.to_owned() }
}

/// Conditions with those of `before` that were not restated, as far as they are ours.
pub(crate) fn keep_others(
    before: &[Condition],
    restated: Vec<Condition>,
    ours: &[&str],
) -> Vec<Condition> {
    let kept = before.iter().filter(|c| {
        ours.contains(&c.type_.as_str()) && !restated.iter().any(|n| n.type_ == c.type_)
    });
    kept.cloned().chain(restated.iter().cloned()).collect()
}

/// Since when a phase is shown: kept while it stays.
pub(crate) fn since(before: Option<&Time>, stays: bool, now: Timestamp) -> Option<Time> {
    let kept = before.cloned().filter(|_| stays);
    Some(kept.unwrap_or_else(|| Time(whole_second(now))))
}
