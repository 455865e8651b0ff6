//! The rung `Deploying`: the StatefulSet runs the generation that was written, by its own status.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use phased::deadline::{self, Progress};
use phased::ladder::{Finding, Judgement, Verdict};
use phased::rollout::{self, Rollout};
use phased::step::Delete;
use phased::{Live, Step};

use super::context::{Context, Tending};
use super::reason;
use super::rolls::Revisions;
use super::upgrade::State;
use crate::parts::members::{self, Members, REVISION_LABEL};
use crate::parts::stall;

/// How often an unfinished rollout is looked at, in seconds.
const LOOK_AGAIN_SECONDS: i64 = 5;
/// How often a failed upgrade is looked at, in seconds.
const FAILED_SECONDS: i64 = 30;

/// Judges the rollout.
pub fn deploy(context: &Context) -> Judgement {
    let mut tending = Tending::new(context);
    let Some(set) = context.stateful_set() else {
        let finding = Finding::new(&reason::ROLLOUT_WAITING, "the StatefulSet does not exist");
        tending.wait(finding, "RolledOut", LOOK_AGAIN_SECONDS);
        return tending.judgement;
    };
    if context.is_failed() {
        failed(&mut tending);
        return tending.judgement;
    }
    if !context.set_is_written() {
        tending.work(
            &reason::ROLLING_OUT,
            "the StatefulSet is being changed",
            "the StatefulSet is to change and is not changed",
        );
        tending.wake_after(LOOK_AGAIN_SECONDS);
        return tending.judgement;
    }
    if let Some((progress, message)) = progress(context, &set) {
        unfinished(&mut tending, &progress, &message);
    }
    tending.judgement
}

/// The ledger of an unfinished rollout and its state in words; `None` when it is complete.
pub fn progress(context: &Context, set: &StatefulSet) -> Option<(Progress, String)> {
    let (mark, message) = match rollout::stateful_set(set) {
        Rollout::Complete => return None,
        Rollout::Unseen => {
            let generation = set.metadata.generation.unwrap_or_default();
            let message = "the StatefulSet controller has not looked at this generation yet";
            (format!("{generation}/unseen"), message.to_owned())
        }
        Rollout::Moving { mark, message } => (mark, message),
    };
    // An upgrade keeps its own ledger, by the set's revisions alone.
    if let Some(ledger) = &context.upgrade.memory.progress {
        return Some((ledger.clone(), message));
    }
    let before = context.status.progress.as_ref();
    Some((deadline::advance(before, &mark, context.observed.now), message))
}

fn unfinished(tending: &mut Tending<'_>, progress: &Progress, message: &str) {
    let context = tending.context;
    let cause = stall::find(tending, &down(context));
    if tending.judgement.verdict == Verdict::Asking {
        return;
    }
    replace_blocking_pod(tending);
    let patience = patience_seconds(context);
    let deadline = deadline::deadline(progress, patience);
    let upgrading = context.upgrade.memory.state == State::Upgrading;
    let verdict = match cause {
        // The upgrade machine alone says when an upgrade has failed.
        cause if !upgrading && context.observed.now >= deadline => {
            tending.wake_after(FAILED_SECONDS);
            Verdict::Failed(stall::exceeded(patience, message, cause))
        }
        Some(cause) => waiting(cause.finding, deadline),
        None => waiting(gate_or(context, message), deadline),
    };
    if matches!(verdict, Verdict::Waiting { .. }) {
        tending.wake_after(LOOK_AGAIN_SECONDS);
    }
    tending.judge(verdict);
}

/// What the next pod waits for, or else how far the rollout is.
fn gate_or(context: &Context, message: &str) -> Finding {
    let waits = context.rolling.waits.clone();
    waits.unwrap_or_else(|| Finding::new(&reason::ROLLOUT_WAITING, message))
}

fn waiting(finding: Finding, deadline: Timestamp) -> Verdict {
    Verdict::Waiting { finding, gate: "RolledOut", deadline: Some(deadline) }
}

fn patience_seconds(context: &Context) -> i64 {
    context.blueprint.as_ref().map_or(600, |b| b.valid.progress_deadline_seconds)
}

/// Ordinals whose pods are not ready, from the highest, which is rolled first.
fn down(context: &Context) -> Vec<u32> {
    let count = context.recorded.count.unwrap_or(1);
    let ready = context.servers().ready;
    let mut down: Vec<u32> = (0..count).rev().filter(|n| !ready.contains(n)).collect();
    if down.is_empty() {
        down.push(0);
    }
    down
}

/// A failed upgrade: its cause, and what leads out of it.
fn failed(tending: &mut Tending<'_>) {
    let context = tending.context;
    let cause = stall::find(tending, &down(context));
    if tending.judgement.verdict == Verdict::Asking {
        return;
    }
    let memory = &context.upgrade.memory;
    let (target, current) = (memory.target.as_deref(), memory.current.as_deref());
    let cause = cause.map_or_else(
        || "no cause was found in pods, claims and Events".to_owned(),
        |c| format!("{}: {}", c.finding.reason.name, c.finding.message),
    );
    let message = format!(
        "the upgrade to {} made no progress for {} seconds; {cause}. Edits are held; write the image \
         {} again, or another one",
        target.unwrap_or("another image"),
        patience_seconds(context),
        current.unwrap_or("that ran before")
    );
    tending.wake_after(FAILED_SECONDS);
    tending.judge(Verdict::Failed(Finding::new(&reason::UPGRADE_FAILED, message)));
}

/// A pod of a superseded revision that is not ready holds the set up for ever (kubernetes 67250): it
/// is deleted under its uid, the highest ordinal first, once the set would make it anew otherwise.
fn replace_blocking_pod(tending: &mut Tending<'_>) {
    let context = tending.context;
    let Some(revisions) = context.revisions.as_ref().filter(|revisions| revisions.observed) else {
        return;
    };
    let servers = context.servers();
    let blocking = servers.pods.iter().rfind(|(ordinal, pod)| {
        members::blocks(pod, &revisions.update) && comes_back_otherwise(**ordinal, pod, revisions)
    });
    let Some((ordinal, pod)) = blocking else { return };
    let id = context.pod_id(*ordinal);
    if let Some(trouble) = context.observed.trouble_of(&id) {
        tending.refused(trouble);
        return;
    }
    let cause = stall::near_cause(context, *ordinal);
    let because = cause.map_or_else(String::new, |c| format!(": {}", c.finding.message));
    let why = format!("it runs a superseded revision and is not ready{because}");
    tending.note(Some(id.clone()), Finding::new(&reason::BLOCKING_POD_REPLACED, why.clone()));
    tending.judgement.steps.push(Step::Delete(Delete::of(id, pod, why)));
}

/// Whether a pod that is deleted comes back from another revision: above the partition from the
/// new one, below it from the current one.
fn comes_back_otherwise(ordinal: u32, pod: &Live, revisions: &Revisions) -> bool {
    let next = if ordinal >= revisions.partition { &revisions.update } else { &revisions.current };
    pod.label(REVISION_LABEL) != Some(next)
}
