//! The upgrade machine: what is upgrading, whether it made progress, and whether it has failed.
//!
//! A function of the stored status and of the StatefulSet's own revisions
//! (docs/design/0004-zookeeper.md). Must not look at pods, and must not decide what is written;
//! [`super::provisioning`] and [`super::status`] do.

use jiff::Timestamp;
use phased::deadline::{self, Progress};

/// Where the machine stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// No upgrade is under way.
    #[default]
    Idle,
    /// The set rolls to another image.
    Upgrading,
    /// It made no progress for too long; the set is left alone.
    Failed,
}

/// What the status remembers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The state.
    pub state: State,
    /// Tag that runs; `None` before every pod was ready for the first time.
    pub current: Option<String>,
    /// Tag that the upgrade leads to.
    pub target: Option<String>,
    /// When it last made progress.
    pub progress: Option<Progress>,
}

/// What the StatefulSet shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// Its status speaks of the generation that is stored.
    pub observed: bool,
    /// Current and update revision are the same.
    pub revisions_equal: bool,
    /// The update revision.
    pub update_revision: String,
    /// Pods of the update revision.
    pub updated: i32,
    /// Pods that there are to be.
    pub wanted: i32,
    /// Pods that are ready.
    pub ready: i32,
    /// Tag of the image in its template.
    pub tag: String,
    /// Nothing keeps the set from taking its pods one after the other.
    pub released: bool,
    /// The spec asks for another image than the template's, and nothing keeps it from being written.
    pub image_is_to_change: bool,
}

/// Where the machine stands now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What the status is to remember.
    pub memory: Memory,
    /// The deadline has passed, and the rest of the roll is to be left to the set itself before the
    /// upgrade counts as failed.
    pub let_go: bool,
    /// When the upgrade fails without progress.
    pub deadline: Option<Timestamp>,
}

/// The next state. `sight` is `None` when there is no set.
pub fn advance(
    before: &Memory,
    sight: Option<&Sight>,
    patience_seconds: i64,
    now: Timestamp,
) -> Outcome {
    let Some(sight) = sight else { return gone(before) };
    let current = before.current.clone().or_else(|| first_version(sight));
    let at = |state, target, progress| Memory { state, current: current.clone(), target, progress };
    let done = sight.observed && sight.revisions_equal && sight.updated == sight.wanted;
    match before.state {
        State::Failed if sight.image_is_to_change => Outcome {
            // The spec's image is written in this pass; the next one finds it in the template.
            memory: at(State::Upgrading, before.target.clone(), None),
            ..Outcome::default()
        },
        State::Failed if !(sight.observed && sight.revisions_equal) => {
            Outcome { memory: before.clone(), ..Outcome::default() }
        }
        State::Failed | State::Upgrading if done => Outcome {
            memory: Memory { current: Some(sight.tag.clone()), ..at(State::Idle, None, None) },
            ..Outcome::default()
        },
        // A roll that was over before anybody looked is an upgrade all the same.
        State::Idle if done && current.is_some() => Outcome {
            memory: Memory { current: Some(sight.tag.clone()), ..at(State::Idle, None, None) },
            ..Outcome::default()
        },
        State::Idle if !sight.observed || !is_other_image(current.as_ref(), sight) => {
            Outcome { memory: at(State::Idle, None, None), ..Outcome::default() }
        }
        State::Failed | State::Upgrading | State::Idle => {
            // What led to a failure is no clock for what follows it.
            let ledger = before.progress.as_ref().filter(|_| before.state != State::Failed);
            let progress = progress(ledger, sight, now);
            let deadline = deadline::deadline(&progress, patience_seconds);
            let late = now >= deadline && !sight.image_is_to_change;
            let state = if late && sight.released { State::Failed } else { State::Upgrading };
            Outcome {
                memory: at(state, Some(sight.tag.clone()), Some(progress)),
                let_go: late && !sight.released,
                deadline: Some(deadline),
            }
        }
    }
}

/// A set that is gone is made anew from the spec, and whatever had failed went with it.
fn gone(before: &Memory) -> Outcome {
    let memory = Memory {
        state: State::Idle,
        current: before.current.clone(),
        target: None,
        progress: None,
    };
    Outcome { memory, ..Outcome::default() }
}

/// The version, once every pod is ready for the first time.
fn first_version(sight: &Sight) -> Option<String> {
    let settled = sight.observed && sight.revisions_equal && sight.ready == sight.wanted;
    (settled && sight.wanted > 0).then(|| sight.tag.clone())
}

fn is_other_image(current: Option<&String>, sight: &Sight) -> bool {
    current.is_some_and(|current| *current != sight.tag)
}

/// What counts as progress: another update revision, or another number of updated pods. Before the
/// set has looked at the last write it shows neither, so the ledger stays as it is.
fn progress(ledger: Option<&Progress>, sight: &Sight, now: Timestamp) -> Progress {
    match ledger {
        Some(kept) if !sight.observed && kept.mark.starts_with(MARK) => kept.clone(),
        ledger => deadline::advance(ledger, &mark(&sight.update_revision, sight.updated), now),
    }
}

/// What the marks of upgrades begin with.
const MARK: &str = "upgrade/";

/// What progress of an upgrade looks like.
pub fn mark(update_revision: &str, updated: i32) -> String {
    format!("{MARK}{update_revision}/{updated}")
}
