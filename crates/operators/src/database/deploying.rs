//! The rung `Deploying`: the StatefulSet runs the generation that was written, by its own status.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use phased::Step;
use phased::deadline::{self, Progress};
use phased::fact::{Question, Reply, SeenEvent};
use phased::ladder::{Finding, Judgement, Verdict};
use phased::rollout::{self, Rollout};
use phased::step::{Delete, Propagation};

use super::causes::{self, Cause};
use super::context::{Context, Sight};
use super::tending::Tending;
use super::{reason, servers};

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
    let desired = servers::stateful_set(blueprint);
    let live = context.seen(&desired.id);
    let standing = desired.stand(live.as_ref(), &blueprint.owner());
    if standing != phased::child::Standing::Current {
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
        Some((progress, message)) => stalled(&mut tending, &set, &progress, &message),
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
    let before = context.status.progress.as_ref();
    Some((deadline::advance(before, &mark, context.observed.now), message))
}

/// The set counts its pods; the pod itself must say the same (reference/database.md section 5).
fn await_pod(tending: &mut Tending<'_>) {
    let id = tending.context.names.primary_pod();
    let message = match tending.context.sight(&id) {
        Sight::Unasked(question) => {
            tending.judgement.asks.push(question);
            tending.judge(Verdict::Asking);
            return;
        }
        Sight::Seen(live) if live.read::<Pod>().is_ok_and(|p| is_ready(&p)) => return,
        Sight::Seen(_) => format!("{id} is not ready"),
        Sight::Absent => format!("{id} does not exist"),
        Sight::Unread(trouble) => format!("{id} cannot be read: {}", trouble.message),
    };
    let finding = Finding::new(&reason::ROLLOUT_WAITING, message);
    tending.wait(finding, "RolledOut", LOOK_AGAIN_SECONDS);
}

fn stalled(tending: &mut Tending<'_>, set: &StatefulSet, progress: &Progress, message: &str) {
    let context = tending.context;
    let cause = find_cause(tending, set);
    if tending.judgement.verdict == Verdict::Asking {
        return;
    }
    replace_blocking_pod(tending, set, cause.as_ref());
    let patience = patience_seconds(context);
    let deadline = deadline::deadline(progress, patience);
    let verdict = match cause {
        Some(cause) if cause.terminal => Verdict::Failed(cause.finding),
        cause if context.observed.now >= deadline => {
            Verdict::Failed(exceeded(patience, message, cause))
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

fn exceeded(patience: i64, message: &str, cause: Option<Cause>) -> Finding {
    let cause = cause.map_or_else(
        || "no cause was found in pods, claims and Events".to_owned(),
        |c| format!("{}: {}", c.finding.reason.name, c.finding.message),
    );
    let message = format!("no progress for {patience} seconds ({message}); {cause}");
    Finding::new(&reason::PROGRESS_DEADLINE_EXCEEDED, message)
}

fn patience_seconds(context: &Context) -> i64 {
    context.blueprint.as_ref().map_or(600, |b| b.valid.progress_deadline_seconds)
}

/// Looks at the pod, at the Events about set, pod and claim, and at the claim, in this order: what
/// lies nearer to the server tells more.
fn find_cause(tending: &mut Tending<'_>, set: &StatefulSet) -> Option<Cause> {
    let context = tending.context;
    let (pod_id, claim_id) = (context.names.primary_pod(), context.names.data_claim());
    let pod = context.observed.object(&pod_id);
    let claim = context.observed.object(&claim_id);
    let typed_pod = pod.and_then(|live| live.read::<Pod>().ok());
    let typed_claim = claim.and_then(|live| live.read::<PersistentVolumeClaim>().ok());
    if let Some(cause) = typed_pod.as_ref().and_then(|p| causes::of_pod(&pod_id.name, p)) {
        return Some(cause);
    }
    let mut about: Vec<String> = set.metadata.uid.iter().cloned().collect();
    about.extend(pod.into_iter().chain(claim).map(|live| live.uid().to_owned()));
    let question = Question::Events { namespace: context.names.namespace.clone(), about };
    let told = match context.observed.facts.get(&question) {
        None => {
            tending.judgement.asks.push(question);
            tending.judge(Verdict::Asking);
            return None;
        }
        Some(Ok(Reply::Events(events))) => {
            causes::of_events(events, typed_pod.as_ref(), typed_claim.as_ref())
                .or_else(|| hung(context, typed_pod.as_ref(), events))
        }
        Some(Ok(_)) => None,
        Some(Err(trouble)) => {
            let message = format!("Events cannot be read: {}", trouble.message);
            tending.note(None, Finding::new(&reason::READ_FAILED, message));
            hung(context, typed_pod.as_ref(), &[])
        }
    };
    told.or_else(|| typed_claim.and_then(|c| causes::of_claim(&claim_id.name, &c)))
}

fn hung(context: &Context, pod: Option<&Pod>, events: &[SeenEvent]) -> Option<Cause> {
    causes::of_probe(&context.names.primary_pod().name, pod?, events, context.observed.now)
}

/// A pod of a superseded revision that is not ready holds up the set for ever (kubernetes 67250):
/// it is deleted, once, under its uid.
fn replace_blocking_pod(tending: &mut Tending<'_>, set: &StatefulSet, cause: Option<&Cause>) {
    let context = tending.context;
    let id = context.names.primary_pod();
    let Some(live) = context.observed.object(&id) else { return };
    let Ok(pod) = live.read::<Pod>() else { return };
    let Some(update) = set.status.as_ref().and_then(|s| s.update_revision.as_deref()) else {
        return;
    };
    let seen = set.status.as_ref().and_then(|s| s.observed_generation) >= set.metadata.generation;
    let superseded = live.label("controller-revision-hash").is_some_and(|r| r != update);
    let replaced = made_since_the_roll(context, live);
    if !seen || !superseded || is_ready(&pod) || live.deletion_time().is_some() || replaced {
        return;
    }
    let because = cause.map_or_else(String::new, |c| format!(": {}", c.finding.message));
    let why = format!("it runs a superseded revision and is not ready{because}");
    tending.note(Some(id.clone()), Finding::new(&reason::BLOCKING_POD_REPLACED, why.clone()));
    tending.judgement.steps.push(Step::Delete(Delete {
        id,
        uid: live.uid().to_owned(),
        resource_version: None,
        propagation: Propagation::Background,
        why,
    }));
}

/// Whether the pod was made after this rollout was first seen: another delete would not change what
/// it is made from. The ledger's mark names the revision that it speaks of.
fn made_since_the_roll(context: &Context, pod: &phased::Live) -> bool {
    let Some(progress) = &context.status.progress else { return false };
    let created = pod.metadata.creation_timestamp.as_ref().map(|t| t.0);
    created.is_some_and(|at| at > progress.since.0)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
}
