//! A controller played forward until nothing moves.
//!
//! Must not describe; [`crate::forecast`] reads the log.

use phased::fact::Question;
use phased::ladder::Verdict;
use phased::plan::{Note, Stands};
use phased::{Plan, Wake};

use crate::stage::{Progress, Stage};

/// The most passes of a course; a controller that never settles is cut off here.
const PASSES: usize = 600;
/// How often time may pass without anything happening before a wait is taken for the end.
const PATIENCE: usize = 3;

/// How a course ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// At this place on the ladder: done, waiting, blocked or failed.
    At(Stands),
    /// With questions that only the world can answer.
    Asks(Vec<Question>),
    /// The resource is not on the ladder: it is being deleted, or it does not parse.
    OffTheLadder(Vec<String>),
    /// It was still moving when the forecast was cut off.
    Moving,
}

/// A course on its way.
pub struct Course {
    /// The stage.
    pub stage: Stage,
    /// What the last plan says of what is not done.
    pub notes: Vec<Note>,
    /// Whether the resource is paused: what is played is what follows once the pause is lifted.
    pub paused: bool,
    passes: usize,
    idle: usize,
}

impl Course {
    /// A course from where the stage stands, or would stand without a pause.
    pub fn new(mut stage: Stage) -> Self {
        let paused = stage.lift_pause();
        Self { stage, notes: Vec::new(), paused, passes: 0, idle: 0 }
    }

    /// Goes on until something must be read, or the end.
    pub fn run(&mut self) -> Progress<End> {
        while self.passes < PASSES {
            let before = self.stage.seen.root.clone();
            let decision = match self.stage.pass() {
                Progress::Needs(questions) => return Progress::Needs(questions),
                Progress::Done(decision) => decision,
            };
            self.passes += 1;
            self.notes.clone_from(&decision.plan.notes);
            if !decision.open.is_empty() {
                if self.stage.let_move() {
                    self.tick(1);
                    continue;
                }
                return Progress::Done(End::Asks(decision.open));
            }
            let changed =
                !decision.plan.steps.is_empty() || self.stage.seen.root.value != before.value;
            if changed || decision.plan.wake == Wake::Now && self.idle < PATIENCE {
                self.idle = if changed { 0 } else { self.idle + 1 };
                continue;
            }
            if self.stage.let_move() {
                self.idle = 0;
                self.tick(1);
                continue;
            }
            if let Some(end) = self.end(&decision.plan) {
                return Progress::Done(end);
            }
        }
        Progress::Done(End::Moving)
    }

    /// The end, unless waiting a little may bring more.
    fn end(&mut self, plan: &Plan) -> Option<End> {
        let settled = plan.stands.as_ref().is_none_or(|s| s.verdict == Verdict::Done);
        if let (Wake::At(at), false) = (&plan.wake, settled || self.idle >= PATIENCE) {
            self.idle += 1;
            self.stage.seen.now = (*at).max(self.stage.seen.now);
            return None;
        }
        Some(match &plan.stands {
            Some(stands) => End::At(stands.clone()),
            None => End::OffTheLadder(plan.notes.iter().map(|note| note.message.clone()).collect()),
        })
    }

    fn tick(&mut self, seconds: i64) {
        let later = self.stage.seen.now.checked_add(jiff::SignedDuration::from_secs(seconds));
        if let Ok(later) = later {
            self.stage.seen.now = later;
        }
    }
}
