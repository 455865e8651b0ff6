//! Bringing children about: one at a time, each compared, each with its reason.
//!
//! Collects the judgement of one rung. Must not know which children there are.

use phased::child::{Desired, Drift, INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL, Standing};
use phased::fact::{Fate, Question, Trouble};
use phased::ladder::{Finding, Judgement, Verdict};
use phased::pause::BECAUSE_PAUSED;
use phased::plan::{EventNote, Note};
use phased::{Live, ObjectId, Reason, Step, StepTrouble, Wake};

use super::reason;
use super::scene::{Scene, Sight};

/// How often what no watch shows is looked at again, in seconds.
const LOOK_AGAIN_SECONDS: i64 = 5;

/// A rung's judgement in the making.
pub struct Tending<'a, S> {
    /// The snapshot.
    pub context: &'a S,
    /// What was found so far.
    pub judgement: Judgement,
}

/// How a child came out.
#[derive(Clone, Debug, PartialEq)]
pub enum Tended {
    /// It is there and as declared, or a step of this plan mends it.
    Kept(Box<Live>),
    /// It is not there; the caller knows how to make it.
    Missing,
    /// Nothing can be done about it now; the judgement says why.
    Held,
}

impl<'a, S: Scene> Tending<'a, S> {
    /// Nothing found yet: all is done.
    pub fn new(context: &'a S) -> Self {
        Self { context, judgement: Judgement::of(Verdict::Done) }
    }

    /// Keeps the worse of the verdicts, the earlier one among equals.
    pub fn judge(&mut self, verdict: Verdict) {
        if rank(&verdict) > rank(&self.judgement.verdict) {
            self.judgement.verdict = verdict;
        }
    }

    /// Asks to be woken.
    pub fn wake_after(&mut self, seconds: i64) {
        let wake = Wake::after(self.context.observed().now, seconds);
        self.judgement.wake = self.judgement.wake.clone().earliest(wake);
    }

    /// Waits for something that a watch or the next look will show.
    pub fn wait(&mut self, finding: Finding, gate: &'static str, seconds: i64) {
        self.judge(Verdict::Waiting { finding, gate, deadline: None });
        self.wake_after(seconds);
    }

    /// Asks, and judges nothing before it is answered.
    pub fn ask(&mut self, question: Question) {
        if !self.judgement.asks.contains(&question) {
            self.judgement.asks.push(question);
        }
        self.judge(Verdict::Asking);
    }

    /// Whether later children may build on what was found.
    pub fn may_go_on(&self) -> bool {
        matches!(self.judgement.verdict, Verdict::Done | Verdict::Working(_) | Verdict::Asking)
    }

    /// Mends a child that is there; `step` replaces the kernel's write where that must not be used.
    pub fn child(&mut self, desired: &Desired) -> Tended {
        let live = match self.context.sight(&desired.id) {
            Sight::Unasked(question) => {
                self.ask(question);
                // A rung that merely tends gets no answers. Of a resource that has served, its step
                // is safe all the same: the first write to a name follows a live read.
                return if self.context.has_served() {
                    self.absent(&desired.id)
                } else {
                    Tended::Held
                };
            }
            Sight::Unread(trouble) => {
                self.unread(&desired.id, &trouble);
                return Tended::Held;
            }
            Sight::Absent => return self.absent(&desired.id),
            Sight::Seen(live) => live,
        };
        match desired.stand(Some(&live), &self.context.owner()) {
            Standing::Missing(_) => self.absent(&desired.id),
            Standing::Current => Tended::Kept(live),
            Standing::Outdated { step, drift } => {
                self.mend(&desired.id, step, drift);
                Tended::Kept(live)
            }
            Standing::Foreign { owner } => {
                self.foreign(&desired.id, &live, &owner);
                Tended::Held
            }
            Standing::Terminating => {
                self.terminating(&desired.id, &live);
                Tended::Held
            }
        }
    }

    /// A child that is missing, and the plain way to make it.
    pub fn apply(&mut self, desired: &Desired) -> Tended {
        let tended = self.child(desired);
        if tended == Tended::Missing
            && let Standing::Missing(step) = desired.stand(None, &self.context.owner())
        {
            self.create(&desired.id, step);
        }
        tended
    }

    /// The same for a child that the servers can do without: its absence is no news.
    pub fn apply_quietly(&mut self, desired: &Desired) {
        let before = self.judgement.verdict.clone();
        if self.apply(desired) == Tended::Missing {
            self.judgement.verdict = before;
        }
    }

    /// Makes a missing child by `step`.
    pub fn create(&mut self, id: &ObjectId, step: Step) {
        self.judgement.steps.push(step);
        let what = format!("{id} does not exist and is");
        self.work(
            &reason::CHILD_MISSING,
            &format!("{what} being created"),
            &format!("{what} not created"),
        );
    }

    /// Says what is done now; or, of a paused resource, that it is not.
    pub fn work(&mut self, reason: &'static Reason, doing: &str, leaving: &str) {
        self.judge(if self.context.paused() {
            let message = format!("{leaving}, because {BECAUSE_PAUSED}");
            Verdict::Blocked(Finding::new(reason, message))
        } else {
            Verdict::Working(Finding::new(reason, doing))
        });
    }

    fn absent(&mut self, id: &ObjectId) -> Tended {
        match self.trouble(id) {
            Some(trouble) => {
                self.refused(&trouble);
                Tended::Held
            }
            None => Tended::Missing,
        }
    }

    fn mend(&mut self, id: &ObjectId, step: Step, drift: Option<Drift>) {
        if let Some(trouble) = self.trouble(id) {
            self.refused(&trouble);
            return;
        }
        if let Some(drift) = drift {
            self.reverted(id, &drift);
        }
        self.judgement.steps.push(step);
    }

    /// Tells that somebody's edit of an object is taken back.
    pub fn reverted(&mut self, id: &ObjectId, drift: &Drift) {
        self.judgement.events.push(EventNote {
            warning: true,
            reason: reason::EDIT_REVERTED.name,
            action: "Revert",
            message: format!("{id}: {} was set by {}; taken back", drift.field, drift.manager),
        });
    }

    fn trouble(&self, id: &ObjectId) -> Option<StepTrouble> {
        self.context.observed().trouble_of(id).cloned()
    }

    /// A write that was not accepted: what helps depends on its fate.
    pub fn refused(&mut self, trouble: &StepTrouble) {
        let verdict = write_trouble(trouble);
        let seconds = match trouble.trouble.fate {
            Fate::UserMustAct => 30,
            Fate::WorldMayHeal => LOOK_AGAIN_SECONDS,
            Fate::WeAreWrong => 60,
        };
        self.judge(verdict);
        self.wake_after(seconds);
    }

    /// Waits until an object can be read: a failed read is no absence.
    pub fn unread(&mut self, id: &ObjectId, trouble: &Trouble) {
        let finding = Finding::new(&reason::READ_FAILED, format!("{id}: {}", trouble.message));
        self.wait(finding, "Readable", LOOK_AGAIN_SECONDS);
    }

    /// A child that a former resource of the same name still owns goes with the garbage collector
    /// (fault catalogue G-43); anybody else's is in the way for good.
    fn foreign(&mut self, id: &ObjectId, live: &Live, owner: &str) {
        let kind = S::KIND.kind;
        if self.context.is_former(live) {
            let message = format!("{id} still belongs to a former {kind} of this name ({owner})");
            let finding = Finding::new(&reason::CHILD_TERMINATING, message);
            self.wait(finding, "Gone", LOOK_AGAIN_SECONDS);
            return;
        }
        let message = format!(
            "{id} belongs to somebody else ({owner}); hand it over by the labels \
             {MANAGED_BY_LABEL}={MANAGED_BY} and {INSTANCE_LABEL}={}, give the {kind} another name, \
             or remove it if nobody needs what it holds",
            self.context.name()
        );
        self.judge(Verdict::Blocked(Finding::new(&reason::NAME_CONFLICT, message)));
        self.wake_after(LOOK_AGAIN_SECONDS);
    }

    fn terminating(&mut self, id: &ObjectId, live: &Live) {
        let holders = live.metadata.finalizers.clone().unwrap_or_default();
        let held = if holders.is_empty() {
            String::new()
        } else {
            format!("; finalizers: {}", holders.join(", "))
        };
        let message = format!("{id} is being deleted{held}");
        self.wait(Finding::new(&reason::CHILD_TERMINATING, message), "Gone", LOOK_AGAIN_SECONDS);
    }

    /// Adds a note about something that is not done.
    pub fn note(&mut self, about: Option<ObjectId>, finding: Finding) {
        self.judgement.notes.push(Note { about, reason: finding.reason, message: finding.message });
    }
}

/// What a write that was not accepted means.
pub(crate) fn write_trouble(trouble: &StepTrouble) -> Verdict {
    let said = &trouble.trouble.message;
    let message = format!("{} {}: {said}", trouble.verb, trouble.id);
    match trouble.trouble.fate {
        Fate::UserMustAct if said.contains("exceeded quota") => {
            Verdict::Blocked(Finding::new(&reason::QUOTA_EXCEEDED, message))
        }
        Fate::UserMustAct => Verdict::Blocked(Finding::new(&reason::WRITE_REFUSED, message)),
        Fate::WorldMayHeal => Verdict::Waiting {
            finding: Finding::new(&reason::WRITE_FAILED, message),
            gate: "Writable",
            deadline: None,
        },
        Fate::WeAreWrong => Verdict::Failed(Finding::new(&reason::WRITE_FAILED, message)),
    }
}

fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Done => 0,
        Verdict::Working(_) => 1,
        Verdict::Waiting { .. } => 2,
        Verdict::Failed(_) => 3,
        Verdict::Blocked(_) => 4,
        Verdict::Asking => 5,
    }
}
