//! How a resource stands and why, as data: the answer to "why is it stuck?".
//!
//! From a snapshot with live facts of the cluster. What only the operator can ask (SQL, dependencies)
//! is not asked: there its own last word counts, from the status. Must not guess.

mod standing;
mod unasked;

use jiff::Timestamp;
use phased::fact::Question;
use phased::ladder::{LadderDoc, Verdict};
use phased::pause::PAUSED_ANNOTATION;
use phased::{Live, Plan, Wake};
use serde::Serialize;
use serde_json::Value;

use crate::forecast::{Said, text_at};
use crate::history::{self, Moment};
use crate::next::{ask_line, step_line};
use crate::overdue::{self, Overdue};
use crate::pod;
use crate::stage::{Progress, Stage};
use crate::told::{self, Word};
use crate::words::named;

/// The mark of a rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Done.
    Done,
    /// Here it stands, at work or waiting.
    Here,
    /// Here it stands, and a person must act or a retry must come.
    Stuck,
    /// Still to come.
    Ahead,
}

/// A rung with its mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The phase.
    pub phase: String,
    /// Its mark.
    pub mark: Mark,
    /// What must be true to leave it.
    pub leaves_when: String,
}

/// Objects of which the same holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Met {
    /// What holds: `as declared`, `ready`, `bound`.
    pub what: &'static str,
    /// The objects.
    pub objects: Vec<String>,
}

/// An explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `Kind/namespace/name`.
    pub resource: String,
    /// The phase that the status shows.
    pub phase: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Whether the status says Ready, for this generation.
    pub ready: bool,
    /// The ladder.
    pub ladder: Vec<Step>,
    /// What holds of the present rung.
    pub met: Vec<Met>,
    /// What does not.
    pub unmet: Vec<Said>,
    /// What a resource lacks although it is Ready: its condition `Degraded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<Said>,
    /// Of a paused resource: what would be done without the pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Vec<String>>,
    /// The gate that is shut.
    pub gate: Option<String>,
    /// When waiting becomes a failure.
    pub deadline: Option<Timestamp>,
    /// Since when the operator is overdue, and with what.
    pub overdue: Option<Overdue>,
    /// Last words of pods, kubelet, scheduler, API server and operator.
    pub words: Vec<Word>,
    /// What Steadfast does next.
    pub next: Vec<String>,
    /// When it looks again at the latest.
    pub looks_again: Option<Timestamp>,
    /// What a person can do.
    pub remedies: Vec<String>,
    /// What happened, in order.
    pub history: Vec<Moment>,
    /// The time of the snapshot.
    pub now: Timestamp,
}

/// Explains the resource on the stage; `events` are those of its namespace.
pub fn explain(stage: &mut Stage, events: &[Live]) -> Progress<Explanation> {
    let decision = match stage.decide() {
        Progress::Needs(questions) => return Progress::Needs(questions),
        Progress::Done(decision) => decision,
    };
    let open = decision.open.clone();
    let mut plan = decision.plan;
    if !open.is_empty() {
        // Without their answers: only times are taken from this plan.
        match unasked::unheard(stage, &open) {
            Progress::Needs(questions) => return Progress::Needs(questions),
            Progress::Done(without) => plan = without,
        }
    }
    let held = match unasked::held(stage) {
        Progress::Needs(questions) => return Progress::Needs(questions),
        Progress::Done(held) => held,
    };
    let view = View { stage, plan, open, held, events, ladder: stage.subject.ladder() };
    Progress::Done(view.explanation())
}

/// What an explanation is made from.
struct View<'a> {
    stage: &'a Stage,
    plan: Plan,
    /// Questions that only the operator can ask.
    open: Vec<Question>,
    /// What a pause holds.
    held: Option<Vec<String>>,
    events: &'a [Live],
    ladder: LadderDoc,
}

impl View<'_> {
    fn explanation(&self) -> Explanation {
        let root = &self.stage.seen.root;
        let now = self.stage.seen.now;
        let status = &root.value["status"];
        let ready = condition(status, "Ready");
        let current = status["observedGeneration"].as_i64() == root.metadata.generation;
        let is_ready = current && ready["status"] == "True";
        let since = [&status["phaseSince"], &ready["lastTransitionTime"]]
            .into_iter()
            .find_map(|time| time.as_str()?.parse().ok());
        let waiting = self.waiting().filter(|_| !is_ready);
        let deadline = waiting.and_then(|(_, deadline)| deadline);
        let unmet = if is_ready { Vec::new() } else { self.unmet() };
        let lacks = self.lacks().filter(|_| is_ready);
        Explanation {
            resource: named(&self.stage.resource()),
            phase: text_at(status, "/phase"),
            since,
            ready: is_ready,
            ladder: self.steps(is_ready),
            met: self.met(),
            gate: waiting.map(|(gate, _)| gate.to_owned()),
            deadline,
            overdue: overdue::find(root, &self.plan, self.open.is_empty(), deadline, now),
            words: self.words(),
            next: self.next(is_ready),
            looks_again: self.looks_again(is_ready),
            remedies: self.remedies(unmet.iter().chain(&lacks)),
            history: history::of(root, &named(&self.stage.resource()), self.concerning()),
            unmet,
            lacks,
            held: self.held.clone(),
            now,
        }
    }

    /// When it looks again at the latest. The plan that went without answers waits for them, which the
    /// operator of a settled or paused resource does not.
    fn looks_again(&self, is_ready: bool) -> Option<Timestamp> {
        let seen = &self.stage.seen;
        let calm = is_ready || self.held.is_some();
        let wake = if calm && !self.open.is_empty() {
            Wake::after(seen.now, i64::from(seen.settings.verify_every_seconds))
        } else {
            self.plan.wake.clone()
        };
        match wake {
            Wake::At(at) => Some(at),
            Wake::Now | Wake::OnChange => None,
        }
    }

    /// The phase that it stands on: by the plan, where the plan knows; else by the status.
    fn here(&self) -> String {
        let status = &self.stage.seen.root.value["status"];
        let phase = text_at(status, "/phase");
        if let (true, Some(stands)) = (self.open.is_empty(), &self.plan.stands) {
            return stands.phase.to_owned();
        }
        if self.ladder.rungs.iter().any(|rung| rung.phase == phase) {
            return phase;
        }
        // Aside: the first rung that may give the reason.
        let reason = text_at(condition(status, "Ready"), "/reason");
        let rung =
            self.ladder.rungs.iter().find(|r| r.reasons.iter().any(|one| one.name == reason));
        rung.map_or(phase, |rung| rung.phase.to_owned())
    }

    fn steps(&self, ready: bool) -> Vec<Step> {
        let here = self.here();
        let place = self.ladder.rungs.iter().position(|rung| rung.phase == here);
        let mark = |index: usize| match place {
            _ if ready => Mark::Done,
            Some(place) if index < place => Mark::Done,
            Some(place) if index == place => self.mark_here(),
            _ => Mark::Ahead,
        };
        let steps = self.ladder.rungs.iter().enumerate().map(|(index, rung)| Step {
            phase: rung.phase.to_owned(),
            mark: mark(index),
            leaves_when: rung.leaves_when.to_owned(),
        });
        steps.collect()
    }

    fn mark_here(&self) -> Mark {
        let verdict = self.plan.stands.as_ref().map(|stands| &stands.verdict);
        let status = &self.stage.seen.root.value["status"];
        // What a person holds on purpose is not stuck.
        let words = verdict
            .filter(|_| self.open.is_empty())
            .and_then(|verdict| standing::finding(verdict, &self.stage.seen.root))
            .map(|f| f.message);
        let words = words.unwrap_or_else(|| text_at(condition(status, "Ready"), "/message"));
        if self.held.is_some() && words.contains(PAUSED_ANNOTATION) {
            return Mark::Here;
        }
        let aside = self.ladder.aside.iter().any(|(phase, _)| status["phase"] == *phase);
        let stuck = match verdict {
            Some(Verdict::Blocked(_) | Verdict::Failed(_)) if self.open.is_empty() => true,
            _ => aside || condition(status, "Degraded")["status"] == "True",
        };
        if stuck { Mark::Stuck } else { Mark::Here }
    }

    /// What is waited for and until when. Where the plan went without answers of the outside, only
    /// if the status tells of the same rung that it is not done.
    fn waiting(&self) -> Option<(&'static str, Option<Timestamp>)> {
        let stands = self.plan.stands.as_ref()?;
        let status = &self.stage.seen.root.value["status"];
        let told = condition(status, "Ready")["status"] != "True" && stands.phase == self.here();
        match &stands.verdict {
            Verdict::Waiting { gate, deadline, .. } if self.open.is_empty() || told => {
                Some((gate, *deadline))
            }
            _ => None,
        }
    }

    /// Writes that are due, and questions that only the operator can ask.
    fn next(&self, ready: bool) -> Vec<String> {
        let steps = self.plan.steps.iter().map(step_line);
        if ready {
            // A settled resource is asked again and again; that is no news.
            return steps.collect();
        }
        let mut asks: Vec<String> = self.open.iter().map(ask_line).collect();
        asks.dedup();
        steps.chain(asks).collect()
    }

    /// Events about the resource and what belongs to it, oldest first.
    fn concerning(&self) -> Vec<Word> {
        let mut uids: Vec<&str> = self.stage.seen.objects.values().map(Live::uid).collect();
        uids.push(self.stage.seen.root.uid());
        let about = self.events.iter().filter(|e| uids.contains(&told::about_uid(&e.value)));
        let mut words: Vec<Word> = about.filter_map(|e| told::event(&e.value)).collect();
        words.sort_by_key(|word| word.at);
        words
    }

    /// What pods say now, then warnings, newest first.
    fn words(&self) -> Vec<Word> {
        let objects = self.stage.seen.objects.iter();
        let pods = objects.filter(|(id, live)| id.kind.kind == "Pod" && !pod::is_ready(live));
        let mut words: Vec<Word> = pods.flat_map(|(id, live)| told::pod(id, live)).collect();
        let warnings = self.concerning().into_iter().rev().filter(|word| word.warning);
        for word in warnings {
            if words.iter().all(|other| other.message != word.message) {
                words.push(word);
            }
        }
        words
    }
}

pub(crate) fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let all = status["conditions"].as_array();
    all.and_then(|all| all.iter().find(|c| c["type"] == kind)).unwrap_or(&Value::Null)
}
