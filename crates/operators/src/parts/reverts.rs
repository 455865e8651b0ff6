//! The ledger of edits by other managers that were taken back.
//!
//! One revert is an Event; several without a pause are a fight, which a condition names.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use phased::condition::whole_second;
use phased::plan::EventNote;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reason;

/// Edits by other managers that were taken back.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Reverts {
    /// How many in a row, without a pause of ten minutes.
    #[schemars(with = "i32", range(min = 0))]
    pub count: u32,
    /// The last manager.
    pub manager: String,
    /// The last field, with its object.
    pub field: String,
    /// When it was last taken back.
    pub last: Time,
}

/// From how many reverts without a pause two managers fight.
const FIGHT: u32 = 3;
/// The pause after which reverts are forgotten.
const PAUSE: SignedDuration = SignedDuration::from_mins(10);

/// The ledger after the reverts that this pass's events tell.
pub(crate) fn after(
    before: Option<&Reverts>,
    events: &[EventNote],
    now: Timestamp,
) -> Option<Reverts> {
    let before = before.filter(|r| !is_over(r, now));
    let mut reverted = events.iter().filter(|e| e.reason == reason::EDIT_REVERTED.name);
    let Some(last) = reverted.next_back() else { return before.cloned() };
    let told = last.message.strip_suffix("; taken back").unwrap_or(&last.message);
    let (field, manager) = told.rsplit_once(" was set by ").unwrap_or((told, "unknown"));
    // One fight has one opponent.
    let before = before.filter(|r| r.manager == manager);
    Some(Reverts {
        count: before.map_or(0, |r| r.count).saturating_add(1),
        manager: manager.to_owned(),
        field: field.to_owned(),
        last: Time(whole_second(now)),
    })
}

/// The fight that the ledger tells of, in words, if it is one.
pub(crate) fn fight(reverts: Option<&Reverts>) -> Option<String> {
    let fight = reverts.filter(|reverts| reverts.count >= FIGHT)?;
    Some(format!(
        "{} edits of {} were taken back with less than ten minutes between them, the last of {}; \
         this ends ten minutes after the last",
        fight.count, fight.manager, fight.field
    ))
}

/// When the ledger may be forgotten.
pub(crate) fn forgotten_at(reverts: &Reverts) -> Timestamp {
    reverts.last.0.checked_add(PAUSE).unwrap_or(Timestamp::MAX)
}

fn is_over(reverts: &Reverts, now: Timestamp) -> bool {
    now >= forgotten_at(reverts) || reverts.last.0 > now
}
