//! What a course showed, as data: the answer to "what happens if I apply this?".
//!
//! Must not lay out text; [`crate::page`] does. Serialised as it is for programs.

use phased::ladder::{Finding, Verdict};
use phased::pause::BECAUSE_PAUSED;
use phased::{Live, Reason};
use serde::Serialize;
use serde_json::Value;

use crate::change::Change;
use crate::child::{self, Child, Fate};
use crate::consequence::{self, Interruption, Restart};
use crate::course::{Course, End};
use crate::explanation::condition;
use crate::happening::Happening;
use crate::stage::Stage;
use crate::storage::{self, Storage};
use crate::words::named;

/// What becomes of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It does not exist yet.
    New,
    /// It is changed.
    Changed,
    /// The edit changes nothing.
    Unchanged,
    /// The edit changes nothing, and children are not as declared.
    Disturbed,
    /// It is being deleted already; an edit does not stop that.
    Deleting,
    /// The edit, or a part of it, is refused.
    Refused,
}

/// Something said, with what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// The reason, CamelCase.
    pub reason: String,
    /// The sentence.
    pub message: String,
    /// What a person can do.
    pub remedy: String,
}

/// An action outside Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Act {
    /// Its name.
    pub name: String,
    /// The gate that must be open.
    pub gate: String,
    /// Why.
    pub why: String,
}

/// A phase that follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Passed {
    /// The phase.
    pub phase: String,
    /// The reason for it.
    pub reason: String,
    /// What ends it, from the ladder.
    pub until: String,
}

/// How it ends, as far as can be foreseen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ending {
    /// Whether it is settled then: the highest rung, all done.
    pub settled: bool,
    /// The phase at the end.
    pub phase: String,
    /// What it waits for then, if it does.
    pub says: Option<Said>,
}

/// The edit itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// Whether the resource is new.
    pub new: bool,
    /// What differs.
    pub changes: Vec<Change>,
    /// Fields that can never change once the resource exists.
    pub frozen: Vec<String>,
    /// What a person should know of how it is applied.
    pub notes: Vec<String>,
}

/// A forecast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// `Kind/namespace/name`.
    pub resource: String,
    /// Where the manifest came from.
    pub source: String,
    /// In one word.
    pub outcome: Outcome,
    /// Why it, or a part of it, is refused.
    pub refused: Vec<Said>,
    /// Why nothing but the status is written now; the forecast is of the time after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The edit, field by field; empty for a new resource.
    pub edit: Vec<Change>,
    /// The children.
    pub children: Vec<Child>,
    /// Pods that restart, start or go, in order.
    pub pods: Vec<Restart>,
    /// What clients notice.
    pub service: Vec<Interruption>,
    /// Volumes that are made, grown or deleted.
    pub storage: Vec<Storage>,
    /// Actions outside Kubernetes.
    pub outside: Vec<Act>,
    /// What cannot be undone.
    pub lasting: Vec<String>,
    /// The phases that follow, in order.
    pub phases: Vec<Passed>,
    /// How it ends.
    pub end: Option<Ending>,
    /// What the forecast rests on.
    pub supposes: Vec<String>,
    /// What else a person should know.
    pub notes: Vec<String>,
}

impl Forecast {
    /// A forecast without any course: the server refuses the edit.
    pub fn refused(resource: String, source: String, edit: Edit, refused: Vec<Said>) -> Self {
        Self { refused, ..Self::bare(resource, source, edit, Outcome::Refused) }
    }

    /// A forecast without any course.
    fn bare(resource: String, source: String, edit: Edit, outcome: Outcome) -> Self {
        Self {
            resource,
            source,
            outcome,
            refused: Vec::new(),
            held: None,
            edit: edit.changes,
            children: Vec::new(),
            pods: Vec::new(),
            service: Vec::new(),
            storage: Vec::new(),
            outside: Vec::new(),
            lasting: Vec::new(),
            phases: Vec::new(),
            end: None,
            supposes: Vec::new(),
            notes: edit.notes,
        }
    }

    /// Reads a course that has ended.
    pub fn of(course: &Course, end: &End, source: String, edit: Edit) -> Self {
        let stage = &course.stage;
        if stage.seen.root.deletion_time().is_some() {
            // What goes when is the garbage collector's; nothing of the edit is carried out.
            let mut bare = Self::bare(named(&stage.resource()), source, edit, Outcome::Deleting);
            bare.notes.push("wait until it is gone, and apply the manifest then".to_owned());
            return bare;
        }
        let children = child::all(course);
        let refused = refused(course, end);
        let disturbed = children.iter().any(|child| child.fate != Fate::Unchanged);
        let outcome = match (refused.is_empty(), edit.new) {
            (false, _) => Outcome::Refused,
            (true, true) => Outcome::New,
            (true, false) if !edit.changes.is_empty() => Outcome::Changed,
            (true, false) if disturbed => Outcome::Disturbed,
            (true, false) => Outcome::Unchanged,
        };
        let frozen = edit.frozen.iter().map(|field| format!("{field} cannot change afterwards"));
        let lasting = storage::lasting(stage).into_iter().chain(frozen).collect();
        let held = course.paused.then(|| {
            let told = "nothing but the status is written; it goes on when that is removed";
            format!("{BECAUSE_PAUSED}: {told}")
        });
        let children = if course.paused { child::held(children) } else { children };
        Self {
            resource: named(&stage.resource()),
            source,
            outcome,
            refused,
            held,
            edit: edit.changes,
            pods: consequence::restarts(stage),
            service: consequence::interruptions(stage),
            storage: storage::storage(stage),
            outside: actions(stage),
            lasting,
            phases: phases(stage),
            end: Some(ending(stage, end)),
            supposes: supposes(stage),
            notes: edit.notes,
            children,
        }
    }

    /// Whether nothing follows: all is as it should be, and stays so.
    pub fn is_quiet(&self) -> bool {
        self.outcome == Outcome::Unchanged
            && self.pods.is_empty()
            && self.storage.is_empty()
            && self.outside.is_empty()
            && self.phases.is_empty()
            && self.end.as_ref().is_none_or(|end| end.settled)
    }
}

/// A finding as it is said of a resource.
pub fn said(finding: &Finding, root: &Live) -> Said {
    of_reason(finding.reason, &finding.message, root)
}

/// The same of a reason with its words.
pub fn of_reason(reason: &Reason, message: &str, root: &Live) -> Said {
    Said {
        reason: reason.name.to_owned(),
        message: message.to_owned(),
        remedy: reason.way_out(root),
    }
}

/// What a person must put right before the edit is carried out as it is written.
fn refused(course: &Course, end: &End) -> Vec<Said> {
    let mut all = Vec::new();
    if let End::At(stands) = end
        && let Verdict::Blocked(finding) = &stands.verdict
    {
        let root = &course.stage.seen.root;
        all.push(said(finding, root));
        let kept = course.notes.iter().filter(|note| note.about.is_none());
        all.extend(kept.map(|note| of_reason(note.reason, &note.message, root)));
    }
    if matches!(end, End::OffTheLadder(_)) {
        all.extend(unreadable(&course.stage));
    }
    let refusals = course.stage.log.iter().filter_map(|happening| match happening {
        Happening::Refused { id, message } => Some(Said {
            reason: "WriteRefused".to_owned(),
            message: format!("{}: {message}", named(id)),
            remedy: String::new(),
        }),
        _ => None,
    });
    all.extend(refusals);
    let mut told: Vec<Said> = Vec::new();
    for one in all {
        if told.iter().all(|other| other.message != one.message) {
            told.push(one);
        }
    }
    told
}

/// Why a resource that is not deleted is on no rung: the status of the last pass says so.
fn unreadable(stage: &Stage) -> Option<Said> {
    let ready = condition(&stage.seen.root.value["status"], "Ready");
    let (reason, message) = (text_at(ready, "/reason"), text_at(ready, "/message"));
    let known = stage.subject.ladder().reasons.into_iter().find(|known| known.name == reason);
    let remedy = known.map_or_else(String::new, |known| known.way_out(&stage.seen.root));
    (!message.is_empty()).then_some(Said { reason, message, remedy })
}

fn actions(stage: &Stage) -> Vec<Act> {
    let acts = stage.log.iter().filter_map(|happening| match happening {
        Happening::Acted { name, gate, why } => {
            Some(Act { name: (*name).to_owned(), gate: (*gate).to_owned(), why: why.clone() })
        }
        _ => None,
    });
    acts.collect()
}

fn phases(stage: &Stage) -> Vec<Passed> {
    let ladder = stage.subject.ladder();
    let until = |phase: &str| {
        let rung = ladder.rungs.iter().find(|rung| rung.phase == phase);
        let aside = ladder.aside.iter().find(|(name, _)| *name == phase);
        rung.map(|rung| rung.leaves_when).or(aside.map(|(_, text)| *text)).unwrap_or_default()
    };
    let moves = stage.log.iter().filter_map(|happening| match happening {
        Happening::Phase(transition, _) => Some(Passed {
            phase: transition.to.clone(),
            reason: transition.reason.to_owned(),
            until: until(&transition.to).to_owned(),
        }),
        _ => None,
    });
    moves.collect()
}

fn ending(stage: &Stage, end: &End) -> Ending {
    let phase = stage.seen.root.value["status"]["phase"].as_str().unwrap_or_default().to_owned();
    let words = |reason: &str, message: String| Said {
        reason: reason.to_owned(),
        message,
        remedy: String::new(),
    };
    let (settled, says) = match end {
        End::At(stands) => match &stands.verdict {
            Verdict::Done => (true, None),
            Verdict::Working(finding)
            | Verdict::Blocked(finding)
            | Verdict::Failed(finding)
            | Verdict::Waiting { finding, .. } => (false, Some(said(finding, &stage.seen.root))),
            Verdict::Asking => (false, None),
        },
        End::Asks(questions) => {
            let what = questions.first().map(phased::render::question).unwrap_or_default();
            let what = what.lines().next().unwrap_or_default().to_owned();
            let message =
                format!("what follows depends on an answer that only the operator gets: {what}");
            (false, Some(words("Asks", message)))
        }
        // Of what does not parse the refusal says all.
        End::OffTheLadder(notes) if notes.is_empty() => (false, None),
        End::OffTheLadder(notes) => (false, Some(words("OffTheLadder", notes.join("; ")))),
        End::Moving => {
            let message = "it was still moving when the forecast was cut off".to_owned();
            (false, Some(words("Moving", message)))
        }
    };
    Ending { settled, phase, says }
}

fn supposes(stage: &Stage) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let starts = stage.log.iter().any(|happening| matches!(happening, Happening::Moved(_)));
    if starts {
        all.push("images can be pulled, there is room, and new pods get ready".to_owned());
    }
    all.extend(stage.supposed.iter().cloned());
    all
}

/// The field at a path of the resource, for the page.
pub(crate) fn text_at(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
