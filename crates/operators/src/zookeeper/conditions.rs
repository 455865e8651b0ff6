//! Conditions: the standard ones, and those of the replaced operator in its own form.
//!
//! Must not decide when an upgrade has failed; [`super::upgrade`] does.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use phased::condition::{self, Wanted, whole_second};

use super::report::ClusterCondition;
use super::upgrade::State;

/// Types that this controller writes.
pub const OURS: [&str; 6] = ["PodsReady", "Upgrading", "Error", "Ready", "Progressing", "Degraded"];
/// Reason of `Upgrading`, as the replaced operator writes it.
pub const UPGRADING_REASON: &str = "Updating Zookeeper";
/// Reason of `Error`.
pub const FAILED_REASON: &str = "UpgradeFailed";
/// Message of `Error`.
const FAILED_MESSAGE: &str = "progress deadline exceeded";

/// The condition of that type.
pub fn find<'a>(all: &'a [ClusterCondition], kind: &str) -> Option<&'a ClusterCondition> {
    all.iter().find(|condition| condition.kind == kind)
}

/// Whether the condition of that type is true.
pub fn is_true(all: &[ClusterCondition], kind: &str) -> bool {
    find(all, kind).is_some_and(|condition| condition.status == "True")
}

/// A condition of the replaced operator.
pub struct Historical {
    kind: &'static str,
    status: bool,
    reason: String,
    message: String,
}

/// The three of the replaced operator, in its order.
pub fn historical(pods_ready: bool, state: State, updated: i32) -> [Historical; 3] {
    let plain =
        |kind, status| Historical { kind, status, reason: String::new(), message: String::new() };
    let upgrading = match state {
        State::Idle => plain("Upgrading", false),
        State::Upgrading | State::Failed => Historical {
            reason: UPGRADING_REASON.to_owned(),
            message: updated.to_string(),
            ..plain("Upgrading", true)
        },
    };
    let error = match state {
        State::Idle | State::Upgrading => plain("Error", false),
        State::Failed => Historical {
            reason: FAILED_REASON.to_owned(),
            message: FAILED_MESSAGE.to_owned(),
            ..plain("Error", true)
        },
    };
    [plain("PodsReady", pods_ready), upgrading, error]
}

/// Historical conditions with their times: `lastTransitionTime` moves with the status,
/// `lastUpdateTime` with any change. A condition that was never written before has neither, as it
/// always was, unless it is true.
pub fn settle_historical(
    before: &[ClusterCondition],
    wanted: [Historical; 3],
    now: Timestamp,
) -> Vec<ClusterCondition> {
    let now = whole_second(now).to_string();
    wanted.into_iter().map(|wanted| settled(before, wanted, &now)).collect()
}

fn settled(before: &[ClusterCondition], wanted: Historical, now: &str) -> ClusterCondition {
    let status = if wanted.status { "True" } else { "False" };
    let known = find(before, wanted.kind);
    let same_status = known.map_or(!wanted.status, |known| known.status == status);
    let same = same_status
        && known.is_none_or(|k| k.reason == wanted.reason && k.message == wanted.message);
    let kept =
        |read: fn(&ClusterCondition) -> &String| known.map(read).cloned().unwrap_or_default();
    ClusterCondition {
        kind: wanted.kind.to_owned(),
        status: status.to_owned(),
        reason: wanted.reason,
        message: wanted.message,
        last_update_time: if same { kept(|k| &k.last_update_time) } else { now.to_owned() },
        last_transition_time: if same_status {
            kept(|k| &k.last_transition_time)
        } else {
            now.to_owned()
        },
        observed_generation: None,
    }
}

/// Standard conditions with their times.
pub fn settle(
    before: &[ClusterCondition],
    wanted: Vec<Wanted>,
    generation: i64,
    now: Timestamp,
) -> Vec<ClusterCondition> {
    let before: Vec<Condition> = before.iter().filter_map(standard).collect();
    let settled = condition::settle(&before, wanted, generation, now);
    settled.into_iter().map(plain).collect()
}

fn standard(stored: &ClusterCondition) -> Option<Condition> {
    Some(Condition {
        type_: stored.kind.clone(),
        status: stored.status.clone(),
        reason: stored.reason.clone(),
        message: stored.message.clone(),
        observed_generation: stored.observed_generation,
        last_transition_time: Time(stored.last_transition_time.parse().ok()?),
    })
}

fn plain(condition: Condition) -> ClusterCondition {
    ClusterCondition {
        kind: condition.type_,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        last_update_time: String::new(),
        last_transition_time: condition.last_transition_time.0.to_string(),
        observed_generation: condition.observed_generation,
    }
}
