//! The ladder of phases, as data: rungs in order, the first that is not done is the phase.
//!
//! The same definition is run, documented and checked. Rungs look at a context and return a
//! judgement; they never change anything. Must not know any controller's phases.

use crate::fact::Question;
use crate::plan::{EventNote, Note};
use crate::reason::Reason;
use crate::step::Step;
use crate::wake::Wake;
use jiff::Timestamp;

/// What a rung found (design.md section 2, "Ladder of phases").
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that the rung asks for holds now.
    Done,
    /// Steps of this pass bring it about.
    Working(Finding),
    /// Nothing to do but wait for the gate, until the deadline if progress is expected.
    Waiting {
        /// Why, in words.
        finding: Finding,
        /// The gate that is shut, by name.
        gate: &'static str,
        /// When waiting becomes a failure; `None` where no progress is expected of anybody.
        deadline: Option<Timestamp>,
    },
    /// A person must act; the message names the field and the way out.
    Blocked(Finding),
    /// It went wrong; it is tried again at the time that the retry ledger gives.
    Failed(Finding),
    /// Not known before the asked questions are answered.
    Asking,
}

/// A documented reason with the details of this case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The reason.
    pub reason: &'static Reason,
    /// Sentence for people. Never a secret; stable while the cause is the same.
    pub message: String,
}

impl Finding {
    /// A finding.
    pub fn new(reason: &'static Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// What a rung wants done and known.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// How the rung stands.
    pub verdict: Verdict,
    /// Questions without an answer yet.
    pub asks: Vec<Question>,
    /// Writes of this rung.
    pub steps: Vec<Step>,
    /// Reasons for what is not done, beside the verdict's own.
    pub notes: Vec<Note>,
    /// Events, such as a reverted edit.
    pub events: Vec<EventNote>,
    /// When the rung wants to be looked at again.
    pub wake: Wake,
}

impl Judgement {
    /// A judgement without writes, questions or events.
    pub fn of(verdict: Verdict) -> Self {
        Self {
            verdict,
            asks: Vec::new(),
            steps: Vec::new(),
            notes: Vec::new(),
            events: Vec::new(),
            wake: Wake::OnChange,
        }
    }
}

/// A rung: its documentation and its judge.
pub struct Rung<C: ?Sized> {
    /// What it is, as data.
    pub doc: RungDoc,
    /// Looks at the context and says how the rung stands.
    pub judge: fn(&C) -> Judgement,
}

/// A rung as documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RungDoc {
    /// The phase shown while this rung is the first that is not done.
    pub phase: &'static str,
    /// What must be true to leave it.
    pub leaves_when: &'static str,
    /// Children and actions that it brings about.
    pub effects: &'static [&'static str],
    /// Gates that it may wait for.
    pub gates: &'static [&'static str],
    /// Reasons that it may give.
    pub reasons: &'static [&'static Reason],
    /// How long it waits, in words, and what follows.
    pub wait: &'static str,
    /// Whether its children are repaired even while a lower rung is not done.
    pub tends: bool,
}

/// A ladder as documentation: generated tables and drawings come from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LadderDoc {
    /// The kind.
    pub kind: &'static str,
    /// Rungs from the lowest.
    pub rungs: Vec<RungDoc>,
    /// Phases beside the rungs, such as `Failed`, with what leads in and out.
    pub aside: Vec<(&'static str, &'static str)>,
    /// Every reason of the controller.
    pub reasons: Vec<&'static Reason>,
    /// Condition types with their meaning.
    pub conditions: Vec<(&'static str, &'static str)>,
    /// Those of them that a replaced operator wrote and that keep its form: reasons that are no
    /// words of one piece, or none; times of its own. No rule about conditions holds for them but
    /// that they are listed.
    pub historical: Vec<&'static str>,
}

/// A ladder: rungs from the lowest to the one that means "settled".
pub struct Ladder<C: ?Sized + 'static> {
    /// The rungs.
    pub rungs: &'static [Rung<C>],
}

/// Where the stored status stands on the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// No phase was ever written.
    New,
    /// On this rung, and whether it has been shown long enough to move on.
    At {
        /// Index of the rung.
        index: usize,
        /// Whether the dwell time is over.
        may_advance: bool,
    },
    /// Aside, in a failure that has ended: any rung may follow.
    Aside,
}

/// The outcome of climbing.
#[derive(Clone, Debug, PartialEq)]
pub struct Climb {
    /// Index of the rung to report.
    pub index: usize,
    /// Phase of that rung.
    pub phase: &'static str,
    /// How that rung stands. `Done` below the top means: the next status write moves on.
    pub verdict: Verdict,
    /// All that the rungs looked at asked, want written, noted.
    pub judgement: Judgement,
}

impl<C: ?Sized> Ladder<C> {
    /// The highest rung that a status may show after `stand`: forward at most one rung a write.
    fn limit(&self, stand: Stand) -> usize {
        let top = self.rungs.len().saturating_sub(1);
        match stand {
            Stand::New => 0,
            Stand::At { index, may_advance: true } => (index + 1).min(top),
            Stand::At { index, may_advance: false } => index.min(top),
            Stand::Aside => top,
        }
    }

    /// Judges rungs from the lowest. The first that is not done is the result; rungs above it only
    /// tend their children. Nothing above the limit that `stand` sets is looked at, so that no
    /// effect comes before the phase that announces it.
    ///
    /// # Panics
    /// Never for a ladder with at least one rung.
    pub fn climb(&self, context: &C, stand: Stand) -> Climb {
        let limit = self.limit(stand);
        let mut total = Judgement::of(Verdict::Done);
        let mut first: Option<(usize, Verdict)> = None;
        for (index, rung) in self.rungs.iter().enumerate().take(limit + 1) {
            if first.is_some() && !rung.doc.tends {
                continue;
            }
            let found = (rung.judge)(context);
            let tending = first.is_some();
            merge(&mut total, &found, tending);
            if !tending && found.verdict != Verdict::Done {
                first = Some((index, found.verdict));
            }
        }
        let (index, verdict) = first.unwrap_or((limit, Verdict::Done));
        if verdict == Verdict::Done && index + 1 < self.rungs.len() {
            if let Stand::At { may_advance: false, .. } = stand {
                // The dwell's end is the caller's wake-up; it knows the times.
            } else {
                total.wake = Wake::Now;
            }
        }
        total.verdict = verdict.clone();
        Climb { index, phase: self.rungs[index].doc.phase, verdict, judgement: total }
    }

    /// Index of the rung with this phase.
    pub fn index_of(&self, phase: &str) -> Option<usize> {
        self.rungs.iter().position(|r| r.doc.phase == phase)
    }
}

/// Adds what a rung found. Of a rung that merely tends, questions are left out: nothing waits for
/// their answers.
fn merge(total: &mut Judgement, found: &Judgement, tending: bool) {
    if !tending {
        total.asks.extend(found.asks.iter().cloned());
    }
    total.steps.extend(found.steps.iter().cloned());
    total.notes.extend(found.notes.iter().cloned());
    total.events.extend(found.events.iter().cloned());
    total.wake = total.wake.clone().earliest(found.wake.clone());
}
