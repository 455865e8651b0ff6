//! How a resource stands now: what holds, what does not, what it lacks, and what a person can do.

use phased::ladder::Verdict;
use phased::pause::{BECAUSE_PAUSED, PAUSED_ANNOTATION, PAUSED_REASON};
use phased::{Live, ObjectId};
use serde_json::Value;

use super::{Met, View, condition};
use crate::forecast::{Said, of_reason, said, text_at};
use crate::next::subject_of;
use crate::pod;
use crate::words::named;

impl View<'_> {
    /// What holds, by what is said of it.
    pub(super) fn met(&self) -> Vec<Met> {
        let written: Vec<String> = self.plan.steps.iter().filter_map(subject_of).collect();
        let mut met: Vec<Met> = Vec::new();
        for (id, live) in &self.stage.seen.objects {
            let name = named(id);
            let what = match id.kind.kind {
                "Pod" if pod::is_ready(live) => "ready",
                "PersistentVolumeClaim" if live.value["status"]["phase"] == "Bound" => "bound",
                "Pod" | "PersistentVolumeClaim" => continue,
                _ if written.contains(&name) => continue,
                _ => "as declared",
            };
            match met.iter_mut().find(|one| one.what == what) {
                Some(one) => one.objects.push(name),
                None => met.push(Met { what, objects: vec![name] }),
            }
        }
        met
    }

    pub(super) fn unmet(&self) -> Vec<Said> {
        let mut all = Vec::new();
        let status = &self.stage.seen.root.value["status"];
        if self.open.is_empty() {
            let root = &self.stage.seen.root;
            let stands = self.plan.stands.iter();
            all.extend(stands.filter_map(|stands| finding(&stands.verdict, root)));
            let notes = self.plan.notes.iter();
            all.extend(notes.map(|note| of_reason(note.reason, &note.message, root)));
        }
        let ready = condition(status, "Ready");
        if all.is_empty() && ready["status"] != "True" && !ready.is_null() {
            all.push(self.of_condition(ready));
        }
        let mut told: Vec<Said> = Vec::new();
        // Of the pause it is told what it holds.
        for one in all.into_iter().filter(|one| one.reason != PAUSED_REASON) {
            if told.iter().all(|other| other.message != one.message) {
                told.push(one);
            }
        }
        told
    }

    /// What the condition `Degraded` says.
    pub(super) fn lacks(&self) -> Option<Said> {
        let degraded = condition(&self.stage.seen.root.value["status"], "Degraded");
        (degraded["status"] == "True").then(|| self.of_condition(degraded))
    }

    pub(super) fn of_condition(&self, condition: &Value) -> Said {
        let (reason, message) = (text_at(condition, "/reason"), text_at(condition, "/message"));
        let known = self.ladder.reasons.iter().find(|known| known.name == reason);
        let root = &self.stage.seen.root;
        let remedy = known.map_or_else(String::new, |known| known.way_out(root));
        Said { reason, message, remedy }
    }

    /// What a person can do; that a thing passes by itself is not true of what a pause holds.
    pub(super) fn remedies<'a>(&self, all: impl Iterator<Item = &'a Said>) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        if self.held.is_some() {
            let ObjectId { kind, namespace, name } = self.stage.resource();
            told.push(format!(
                "When it may go on: kubectl annotate {} {name} -n {namespace} {PAUSED_ANNOTATION}-",
                kind.kind.to_lowercase()
            ));
        }
        for said in all.filter(|said| !said.message.contains(BECAUSE_PAUSED)) {
            let is_said = said.message.contains(&said.remedy) || told.contains(&said.remedy);
            if !said.remedy.is_empty() && !is_said {
                told.push(said.remedy.clone());
            }
        }
        told
    }
}

pub(super) fn finding(verdict: &Verdict, root: &Live) -> Option<Said> {
    match verdict {
        Verdict::Done | Verdict::Asking => None,
        Verdict::Working(finding)
        | Verdict::Blocked(finding)
        | Verdict::Failed(finding)
        | Verdict::Waiting { finding, .. } => Some(said(finding, root)),
    }
}
