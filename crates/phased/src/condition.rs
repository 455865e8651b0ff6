//! Conditions as values: standard fields, transition times that move only with the status.
//!
//! Must not read a clock, and must not touch conditions of types it was not told to write.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A condition as the plan wants it, without the times that the kernel keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Type, such as `Ready`.
    pub kind: &'static str,
    /// Status.
    pub status: Truth,
    /// Reason, CamelCase.
    pub reason: &'static str,
    /// Message, at most 32768 bytes; longer ones are cut.
    pub message: String,
}

/// A condition's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// `True`
    True,
    /// `False`
    False,
    /// `Unknown`
    Unknown,
}

impl Truth {
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// `True` or `False`.
    pub fn from_bool(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// The longest message that the API accepts in a condition, in bytes.
const MESSAGE_LIMIT: usize = 32_768;

/// Turns wanted conditions into stored ones: `lastTransitionTime` is kept from `existing` while
/// the status of that type stays the same, and is `now` (whole seconds) otherwise.
pub fn settle(
    existing: &[Condition],
    wanted: Vec<Wanted>,
    generation: i64,
    now: Timestamp,
) -> Vec<Condition> {
    wanted
        .into_iter()
        .map(|w| {
            let before = existing.iter().find(|c| c.type_ == w.kind);
            let kept = before
                .filter(|c| c.status == w.status.as_str())
                .map(|c| c.last_transition_time.clone());
            Condition {
                type_: w.kind.to_owned(),
                status: w.status.as_str().to_owned(),
                reason: w.reason.to_owned(),
                message: cut(w.message),
                observed_generation: Some(generation),
                last_transition_time: kept.unwrap_or_else(|| Time(whole_second(now))),
            }
        })
        .collect()
}

/// The time without its fraction: what the API stores.
pub fn whole_second(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

fn cut(mut message: String) -> String {
    if message.len() > MESSAGE_LIMIT {
        let mut end = MESSAGE_LIMIT;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
    }
    message
}
