//! The ledger of edits by other managers that were taken back (reference/database.md section 2).
//!
//! One revert is an Event; several without a pause are a fight, which a condition names.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use phased::condition::whole_second;
use phased::plan::EventNote;

use super::api::Reverts;
use super::reason;

/// From how many reverts without a pause two managers fight.
const FIGHT: u32 = 3;
/// The pause after which reverts are forgotten.
const PAUSE: SignedDuration = SignedDuration::from_mins(10);

/// The ledger after the reverts that this pass's events tell.
pub fn after(before: Option<&Reverts>, events: &[EventNote], now: Timestamp) -> Option<Reverts> {
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

/// Whether the ledger tells of a fight.
pub fn is_a_fight(reverts: &Reverts) -> bool {
    reverts.count >= FIGHT
}

/// When the ledger may be forgotten.
pub fn forgotten_at(reverts: &Reverts) -> Timestamp {
    reverts.last.0.checked_add(PAUSE).unwrap_or(Timestamp::MAX)
}

fn is_over(reverts: &Reverts, now: Timestamp) -> bool {
    now >= forgotten_at(reverts) || reverts.last.0 > now
}
