//! The rung `Deploying`: the StatefulSet runs the generation that was written, by its own status. While
//! a standby of the roll waits for what only the primary can give it, this rung has that made there
//! ([`super::replication::prepare`]).

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use phased::child::Standing;
use phased::deadline::{self, Progress};
use phased::ladder::{Finding, Judgement, Verdict};
use phased::rollout::{self, Rollout};
use phased::step::Delete;
use phased::{Live, Step};

use super::blueprint::Blueprint;
use super::causes::Cause;
use super::context::Tending;
use super::context::{Context, Sight};
use super::{reason, replication, roles, servers};
use crate::parts::hidden;
use crate::parts::members::{self, Members, REVISION_LABEL, is_ready};
use crate::parts::scene::Scene;
use crate::parts::stall;

/// How often an unfinished rollout is looked at, in seconds.
const LOOK_AGAIN_SECONDS: i64 = 5;

/// Judges the rollout.
pub fn deploy(context: &Context) -> Judgement {
    let mut tending = Tending::new(context);
    let (Some(blueprint), Some(set)) = (&context.blueprint, context.stateful_set()) else {
        let message = "the StatefulSet does not exist";
        tending.wait(
            Finding::new(&reason::ROLLOUT_WAITING, message),
            "RolledOut",
            LOOK_AGAIN_SECONDS,
        );
        return tending.judgement;
    };
    if !is_written(context, blueprint, &set) {
        tending.work(
            &reason::ROLLING_OUT,
            "the StatefulSet is being changed",
            "the StatefulSet is to change and is not changed",
        );
        tending.wake_after(LOOK_AGAIN_SECONDS);
        return tending.judgement;
    }
    match progress(context, &set) {
        None => await_pod(&mut tending),
        Some(_) if has_standbys(blueprint, &set) && primary_runs(context, blueprint, &set) => {
            replace_blocking_pod(&mut tending, &set)
        }
        Some((progress, message)) => {
            stalled(&mut tending, &set, &progress, &message);
            replication::prepare(&mut tending, blueprint);
        }
    }
    tending.judgement
}

/// Whether the set is as it should be. While there are standbys their number is no matter of the
/// primary, which goes on serving.
fn is_written(context: &Context, blueprint: &Blueprint, set: &StatefulSet) -> bool {
    let live = context.seen(&context.names.stateful_set());
    let current = |blueprint: &Blueprint| {
        let desired = servers::stateful_set(blueprint);
        desired.stand(live.as_ref(), &blueprint.owner()) == Standing::Current
    };
    let count = set.spec.as_ref().and_then(|s| u32::try_from(s.replicas?).ok());
    current(blueprint)
        || blueprint.several
            && count.is_some_and(|count| current(&Blueprint { count, ..blueprint.clone() }))
}

/// Whether there are standbys; those that are gone may still be counted.
fn has_standbys(blueprint: &Blueprint, set: &StatefulSet) -> bool {
    blueprint.several || set.status.as_ref().is_some_and(|status| status.replicas > 1)
}

/// Whether the primary runs the template as it is now, whatever the standbys do. A generation that
/// the set's controller has not looked at yet can then only be about their number.
pub(super) fn primary_runs(context: &Context, blueprint: &Blueprint, set: &StatefulSet) -> bool {
    let Some(live) = context.pod(0) else { return false };
    let status = set.status.as_ref();
    let seen = status.and_then(|s| s.observed_generation) >= set.metadata.generation;
    let update = status.and_then(|s| s.update_revision.as_deref());
    let superseded = seen && live.label(REVISION_LABEL) != update;
    !superseded
        && live.deletion_time().is_none()
        && roles::is_assigned(0, live)
        && servers::is_made_from(live, blueprint)
        && live.read::<Pod>().is_ok_and(|pod| is_ready(&pod))
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
    let before = context.status.progress.as_ref();
    Some((deadline::advance(before, &mark, context.observed.now), message))
}

/// The set counts its pods; the pod itself must say the same (reference/database.md section 5).
fn await_pod(tending: &mut Tending<'_>) {
    let id = tending.context.names.primary_pod();
    let message = match tending.context.sight(&id) {
        Sight::Unasked(question) => {
            tending.ask(question);
            return;
        }
        Sight::Seen(live) if live.read::<Pod>().is_ok_and(|p| is_ready(&p)) => {
            if !tending.context.blueprint.as_ref().is_some_and(|b| b.several)
                || roles::is_assigned(0, &live)
            {
                return;
            }
            format!("{id} does not carry its role yet")
        }
        Sight::Seen(_) => format!("{id} is not ready"),
        Sight::Absent => format!("{id} does not exist"),
        Sight::Unread(trouble) => format!("{id} cannot be read: {}", trouble.message),
    };
    let finding = Finding::new(&reason::ROLLOUT_WAITING, message);
    tending.wait(finding, "RolledOut", LOOK_AGAIN_SECONDS);
}

fn stalled(tending: &mut Tending<'_>, set: &StatefulSet, progress: &Progress, message: &str) {
    let context = tending.context;
    let cause = find_cause(tending);
    if tending.judgement.verdict == Verdict::Asking {
        return;
    }
    replace_blocking_pod(tending, set);
    let patience = patience_seconds(context);
    let deadline = deadline::deadline(progress, patience);
    let verdict = match cause {
        Some(cause) if cause.terminal => Verdict::Failed(cause.finding),
        cause if context.observed.now >= deadline => {
            Verdict::Failed(stall::exceeded(patience, message, cause))
        }
        Some(cause) => waiting(cause.finding, deadline),
        None => waiting(Finding::new(&reason::ROLLOUT_WAITING, message), deadline),
    };
    // What failed has its own retry; only a wait is looked at this often.
    if matches!(verdict, Verdict::Waiting { .. }) {
        tending.wake_after(LOOK_AGAIN_SECONDS);
    }
    tending.judge(verdict);
}

fn waiting(finding: Finding, deadline: Timestamp) -> Verdict {
    Verdict::Waiting { finding, gate: "RolledOut", deadline: Some(deadline) }
}

fn patience_seconds(context: &Context) -> i64 {
    context.blueprint.as_ref().map_or(600, |b| b.valid.progress_deadline_seconds)
}

/// Why the pods that are not ready are not, from the highest ordinal, which is rolled first.
fn find_cause(tending: &mut Tending<'_>) -> Option<Cause> {
    let context = tending.context;
    let count = context.blueprint.as_ref().map_or(1, |b| b.count);
    let up = |n: u32| {
        context.pod(n).and_then(|p| p.read::<Pod>().ok()).is_some_and(|p| is_ready(&p))
            && hidden::stranger(context, n).is_none()
    };
    let mut down: Vec<u32> = (0..count).rev().filter(|n| !up(*n)).collect();
    if down.is_empty() {
        down.push(0);
    }
    stall::find(tending, &down)
}

/// A pod of a superseded revision that is not ready holds up the set for ever (kubernetes 67250):
/// it is deleted, once, under its uid. The highest ordinal goes first, as the set rolls.
fn replace_blocking_pod(tending: &mut Tending<'_>, set: &StatefulSet) {
    let context = tending.context;
    let Some(update) = set.status.as_ref().and_then(|s| s.update_revision.as_deref()) else {
        return;
    };
    let seen = set.status.as_ref().and_then(|s| s.observed_generation) >= set.metadata.generation;
    let blocks = |ordinal: u32, pod: &Live| {
        members::blocks(pod, update)
            && !made_since_the_roll(context, pod)
            && hidden::is_ours(context, ordinal, pod)
    };
    let blocking = context.pods().rfind(|(ordinal, pod)| seen && blocks(*ordinal, pod));
    let Some((ordinal, pod)) = blocking else { return };
    if roles::is_being_labelled(context, ordinal, pod) {
        return;
    }
    let id = context.names.pod(ordinal);
    let cause = stall::near_cause(context, ordinal);
    let because = cause.map_or_else(String::new, |c| format!(": {}", c.finding.message));
    let why = format!("it runs a superseded revision and is not ready{because}");
    tending.note(Some(id.clone()), Finding::new(&reason::BLOCKING_POD_REPLACED, why.clone()));
    tending.judgement.steps.push(Step::Delete(Delete::of(id, pod, why)));
}

/// Whether the pod was made after this rollout was first seen: another delete would not change what
/// it is made from. The ledger's mark names the revision that it speaks of. A creation that lies ahead
/// tells of a clock that was set back, and of nothing else (fault catalogue G-32).
fn made_since_the_roll(context: &Context, pod: &phased::Live) -> bool {
    let Some(progress) = &context.status.progress else { return false };
    let created = pod.metadata.creation_timestamp.as_ref().map(|t| t.0);
    created.is_some_and(|at| at > progress.since.0 && at <= context.observed.now)
}
