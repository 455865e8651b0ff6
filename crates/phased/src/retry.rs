//! The retry ledger: failures counted in status, so that no restart forgets or hurries them.
//!
//! Must not read a clock or draw jitter; the runner puts each wake-up off by up to a tenth, so that
//! many resources that failed together do not retry together.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::whole_second;
use crate::ladder::Finding;

/// First delay after a failure, in seconds (reference/database.md section 2).
pub const FIRST_DELAY_SECONDS: i64 = 60;
/// Longest delay, in seconds.
pub const LONGEST_DELAY_SECONDS: i64 = 600;

/// Attempts since the last success, kept in status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// Failures in a row.
    #[schemars(with = "i32", range(min = 0))]
    pub attempts: u32,
    /// Reason of the last failure.
    pub reason: String,
    /// Message of the last failure.
    pub message: String,
    /// When it failed last.
    pub last_failure: Time,
    /// When it is tried again.
    pub next_try: Time,
}

/// The delay after `attempts` failures in a row: 1 minute, doubling to 10 minutes.
pub fn delay_seconds(attempts: u32) -> i64 {
    let doublings = attempts.saturating_sub(1).min(10);
    (FIRST_DELAY_SECONDS << doublings).min(LONGEST_DELAY_SECONDS)
}

/// The ledger after one more failure.
pub fn after_failure(before: Option<&Retry>, failure: &Finding, now: Timestamp) -> Retry {
    let attempts = before.map_or(0, |r| r.attempts).saturating_add(1);
    let now = whole_second(now);
    let next = now
        .checked_add(SignedDuration::from_secs(delay_seconds(attempts)))
        .unwrap_or(Timestamp::MAX);
    Retry {
        attempts,
        reason: failure.reason.name.to_owned(),
        message: failure.message.clone(),
        last_failure: Time(now),
        next_try: Time(next),
    }
}

/// Whether the retry is due. A clock that was set back cannot hold a retry for longer than the
/// longest delay (fault catalogue G-32).
pub fn is_due(retry: &Retry, now: Timestamp) -> bool {
    let skewed = retry.last_failure.0 > now;
    skewed || now >= retry.next_try.0
}
