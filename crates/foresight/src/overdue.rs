//! Whether the operator should have acted already, by what can be seen, without a guess why it has not.

use jiff::{SignedDuration, Timestamp};
use phased::{Live, Plan};
use serde::Serialize;
use serde_json::Value;

/// How late the operator may be before it is said.
const GRACE_SECONDS: i64 = 30;

/// What the operator should have done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overdue {
    /// Since when; `None` where that cannot be seen.
    pub since: Option<Timestamp>,
    /// What shows it.
    pub what: String,
}

/// Since when the operator is overdue, and with what.
pub fn find(
    root: &Live,
    plan: &Plan,
    whole: bool,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Option<Overdue> {
    let late = |at: Timestamp| now.duration_since(at) > SignedDuration::from_secs(GRACE_SECONDS);
    let status = &root.value["status"];
    let generation = root.metadata.generation.unwrap_or_default();
    let observed = status["observedGeneration"].as_i64();
    if observed != Some(generation) {
        let since = last_edit(root)?;
        let text = match observed {
            None => "the operator has not written any status".to_owned(),
            Some(observed) => {
                format!("the status speaks of generation {observed}, and this is {generation}")
            }
        };
        return late(since).then_some(Overdue { since: Some(since), what: text });
    }
    let retry = status["retry"]["nextTry"].as_str().and_then(|time| time.parse().ok());
    if let Some(due) = retry.filter(|due| late(*due) && status["phase"] == "Failed") {
        return Some(Overdue { since: Some(due), what: "the next try was due".to_owned() });
    }
    if let Some(at) = deadline.filter(|at| late(*at)) {
        let text = "the deadline is over and the phase is still the same".to_owned();
        return Some(Overdue { since: Some(at), what: text });
    }
    let due = whole && !plan.steps.is_empty();
    let what = "writes are due; see what comes next".to_owned();
    due.then_some(Overdue { since: None, what })
}

/// When the spec was last written by somebody, or the resource was made.
pub(crate) fn last_edit(root: &Live) -> Option<Timestamp> {
    let entries = root.value["metadata"]["managedFields"].as_array().into_iter().flatten();
    let edits = entries
        .filter(|entry| entry.get("subresource").is_none_or(Value::is_null))
        .filter(|entry| entry["fieldsV1"].get("f:spec").is_some())
        .filter_map(|entry| entry["time"].as_str()?.parse().ok());
    edits.max().or_else(|| root.metadata.creation_timestamp.as_ref().map(|time| time.0))
}
