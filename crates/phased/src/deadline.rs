//! Deadlines by progress: what counts as progress is a mark; a mark that stays too long is a stall.
//!
//! The ledger lives in status, since only it survives a restart. Must not read a clock.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::whole_second;

/// When progress was last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// What progress looked like: counts and revisions. Any change is progress.
    pub mark: String,
    /// Since when it has looked so.
    pub since: Time,
}

/// The ledger after seeing `mark` now.
pub fn advance(before: Option<&Progress>, mark: &str, now: Timestamp) -> Progress {
    match before {
        Some(p) if p.mark == mark && p.since.0 <= now => p.clone(),
        _ => Progress { mark: mark.to_owned(), since: Time(whole_second(now)) },
    }
}

/// When this ledger becomes a stall.
pub fn deadline(progress: &Progress, patience_seconds: i64) -> Timestamp {
    progress
        .since
        .0
        .checked_add(SignedDuration::from_secs(patience_seconds))
        .unwrap_or(Timestamp::MAX)
}
