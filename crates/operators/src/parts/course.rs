//! From a climb to the plan around it: the move that is told, the notes, how long a phase is shown.
//!
//! Must not know which phases there are.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use phased::ladder::{Finding, Judgement};
use phased::plan::{EventNote, Transition};
use phased::{Note, Settings};

use super::reason;

/// The move from one phase to another; `None` when it stays.
pub(crate) fn transition(
    before: Option<&str>,
    to: &'static str,
    finding: &Finding,
) -> Option<Transition> {
    (before != Some(to)).then(|| Transition {
        from: before.unwrap_or_default().to_owned(),
        to: to.to_owned(),
        reason: finding.reason.name,
    })
}

/// The Event about a move.
pub(crate) fn moved(transition: &Transition, warning: bool, finding: &Finding) -> EventNote {
    let from = if transition.from.is_empty() { "(new)" } else { &transition.from };
    let Transition { to, reason, .. } = transition;
    EventNote {
        warning,
        reason: reason::PHASE_CHANGED.name,
        action: "ChangePhase",
        message: format!("{from} -> {to}: {reason}: {}", finding.message),
    }
}

/// Why something is not done: what the phase waits for, a pause, then what the rungs noted.
pub(crate) fn notes(unmet: Option<&Finding>, paused: bool, judgement: &Judgement) -> Vec<Note> {
    let note = |reason, message: &str| Note { about: None, reason, message: message.to_owned() };
    let mut notes: Vec<Note> = unmet.iter().map(|f| note(f.reason, &f.message)).collect();
    if paused {
        notes.push(note(&reason::PAUSED, "nothing but the status is written"));
    }
    for more in &judgement.notes {
        if !notes.contains(more) {
            notes.push(more.clone());
        }
    }
    notes
}

/// When the phase has been shown long enough, if that is still to come.
pub(crate) fn dwell_end(
    since: Option<&Time>,
    settings: &Settings,
    now: Timestamp,
) -> Option<Timestamp> {
    let dwell = SignedDuration::from_secs(i64::from(settings.phase_dwell_seconds));
    let end = since?.0.checked_add(dwell).ok()?;
    (now < end).then_some(end)
}
