//! Deletion: what `spec.deletionPolicy` asks for, then our finalizer goes.
//!
//! Nothing is created any more. Only what carries this resource's uid is deleted, so that the loser
//! of a name clash removes nothing of the winner's (fault catalogue PG-01). Where volumes go, the
//! StatefulSet and its pods go first: a set that still runs would make a deleted claim again, and
//! nobody would ever delete that one. The other owned children are the garbage collector's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use phased::child::{self, INSTANCE_LABEL, Owner};
use phased::condition::{self, Truth, Wanted};
use phased::fact::{Fate, Question};
use phased::plan::{Note, Transition};
use phased::step::{Delete, Finalizer};
use phased::{Live, ObjectId, Plan, Step, Wake};

use super::api::{DatabaseStatus, DeletionPolicy, Phase};
use super::context::{Context, Sight};
use super::{FINALIZER, labels, names, reason, status, valid};
use crate::parts::hidden;
use crate::parts::members::Members;
use crate::parts::scene::Scene;

/// Finalizer by which a client asks that dependants stay.
const ORPHAN: &str = "orphan";

/// Plans for a resource that is being deleted.
pub fn plan(context: &Context) -> Plan {
    let finalizers = context.observed.root.metadata.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|f| f == FINALIZER) {
        // Others hold it: a change of the resource wakes, and the time is only a safety net.
        return Plan { wake: Wake::after(context.observed.now, 60), ..Plan::idle() };
    }
    let mut plan = Plan::idle();
    let policy = context.observed.resource.spec.deletion_policy;
    let orphaning = finalizers.iter().any(|f| f == ORPHAN);
    let mut doubt = None;
    if !orphaning {
        for ordinal in 0..valid::MOST_REPLICAS {
            doubt = remove_left_behind(context, ordinal, &mut plan).or(doubt);
        }
    }
    if policy == DeletionPolicy::Delete && !orphaning {
        match servers(context) {
            Servers::Unasked(question) => plan.asks.push(question),
            Servers::Going(step, message) => {
                plan.steps.extend(step);
                doubt = Some(message);
            }
            Servers::Gone => {}
        }
        let running = doubt.is_some() || !plan.asks.is_empty();
        for id in doomed(context).into_iter().filter(|_| !running) {
            match context.sight(&id) {
                Sight::Unasked(question) => plan.asks.push(question),
                Sight::Unread(trouble) => doubt = Some(format!("{id}: {}", trouble.message)),
                Sight::Absent => {}
                Sight::Seen(live) => plan.steps.extend(removal(context, id, &live)),
            }
        }
    }
    if !plan.asks.is_empty() {
        return Plan { asks: plan.asks, wake: Wake::Now, ..Plan::idle() };
    }
    conclude(context, plan, doubt)
}

/// Deletes a pod that its StatefulSet let go of, since somebody changed its labels: it would go with
/// nothing, and a server would run on without an owner (issue 2). Where the watch does not show the
/// pod it is read, for ordinals that the spec or a claim tells of. Answers what is waited for.
fn remove_left_behind(context: &Context, ordinal: u32, plan: &mut Plan) -> Option<String> {
    let (id, claim) = (context.names.pod(ordinal), context.names.claim(ordinal));
    let expected = i64::from(ordinal) < i64::from(context.observed.resource.spec.replicas)
        || context.claim(ordinal).is_some();
    // By its claim it is told whose the pod is.
    if expected && let Sight::Unasked(question) = context.sight(&claim) {
        plan.asks.push(question);
    }
    match context.sight(&id) {
        Sight::Unasked(question) if expected => plan.asks.push(question),
        Sight::Unread(trouble) => return Some(format!("{id}: {}", trouble.message)),
        Sight::Seen(pod)
            if pod.deletion_time().is_none() && hidden::is_released(context, ordinal, &pod) =>
        {
            let why = "its StatefulSet let go of it, so that it would outlive the Database";
            let message = format!("{id} is being deleted: {why}");
            if context.observed.trouble_of(&id).is_none() {
                plan.steps.push(Step::Delete(Delete::of(id, &pod, why)));
            }
            return Some(message);
        }
        Sight::Unasked(_) | Sight::Seen(_) | Sight::Absent => {}
    }
    None
}

fn conclude(context: &Context, mut plan: Plan, doubt: Option<String>) -> Plan {
    let now = context.observed.now;
    let trouble = context.observed.troubles.first();
    if plan.steps.is_empty() && doubt.is_none() && trouble.is_none() {
        plan.steps.push(Step::Finalizer(Finalizer::Remove(FINALIZER)));
        plan.wake = Wake::after(now, 5);
        plan.notes
            .push(note(context, "the finalizer goes; nothing is left to clean up".to_owned()));
        return plan;
    }
    let seconds = match trouble.map(|t| t.trouble.fate) {
        Some(Fate::UserMustAct) => 30,
        Some(Fate::WorldMayHeal | Fate::WeAreWrong) | None => 5,
    };
    let message = match (trouble, doubt) {
        (Some(t), _) => format!("{} {}: {}", t.verb, t.id, t.trouble.message),
        (None, Some(doubt)) => doubt,
        (None, None) => {
            "volumes and Secrets are being deleted, as spec.deletionPolicy says".to_owned()
        }
    };
    plan.status = status::write(&context.observed.root, &deleting(context, &message));
    plan.transition = transition(context);
    plan.notes.push(note(context, message));
    plan.wake = Wake::after(now, seconds);
    plan
}

fn note(context: &Context, message: String) -> Note {
    Note { about: Some(super::resource_id(&context.names)), reason: &reason::DELETING, message }
}

/// How far the servers are on their way out.
enum Servers {
    /// Not known before this question is answered.
    Unasked(Question),
    /// Still there: what is done about it, and what is waited for.
    Going(Option<Step>, String),
    /// Nothing of ours runs any more.
    Gone,
}

/// Our own set, then its pods. What somebody else's set runs is not waited for.
fn servers(context: &Context) -> Servers {
    let id = context.names.stateful_set();
    match context.sight(&id) {
        Sight::Unasked(question) => return Servers::Unasked(question),
        Sight::Unread(trouble) => {
            return Servers::Going(None, format!("{id}: {}", trouble.message));
        }
        Sight::Seen(live) if child::foreign(&live, &owner(context)).is_some() => {
            return Servers::Gone;
        }
        Sight::Seen(live) => {
            let message = format!("{id} is being deleted before its volumes are");
            return Servers::Going(delete(context, id, &live), message);
        }
        Sight::Absent => {}
    }
    let pod = context.names.primary_pod();
    match context.sight(&pod) {
        Sight::Unasked(question) => Servers::Unasked(question),
        Sight::Unread(trouble) => Servers::Going(None, format!("{pod}: {}", trouble.message)),
        Sight::Seen(live) if is_ours(context, 0, &live) => {
            Servers::Going(None, format!("{pod} must be gone before its volume is deleted"))
        }
        Sight::Seen(_) | Sight::Absent => match context.pods().last() {
            Some((ordinal, pod)) if is_ours(context, ordinal, pod) => {
                let pod = context.names.pod(ordinal);
                Servers::Going(None, format!("{pod} must be gone before its volume is deleted"))
            }
            _ => Servers::Gone,
        },
    }
}

fn is_ours(context: &Context, ordinal: u32, pod: &Live) -> bool {
    pod.label(INSTANCE_LABEL) == Some(&context.names.name)
        || hidden::is_released(context, ordinal, pod)
}

fn owner(context: &Context) -> Owner {
    super::blueprint::owner(&context.names, context.observed.root.uid())
}

/// Everything that may be deleted: by name, and by the labels that volumes carry.
fn doomed(context: &Context) -> Vec<ObjectId> {
    let names = &context.names;
    // Somebody may have labelled a claim otherwise: those of the servers are looked for by name.
    let servers = u32::try_from(context.observed.resource.spec.replicas).unwrap_or(1);
    let mut all = vec![names.superuser_secret(), names.replication_secret()];
    all.extend((0..servers.clamp(1, valid::MOST_REPLICAS)).map(|ordinal| names.claim(ordinal)));
    let labelled = context.observed.of_kind(names::claim_kind()).map(|(id, _)| id.clone());
    let others: Vec<ObjectId> = labelled.filter(|id| !all.contains(id)).collect();
    all.extend(others);
    all
}

/// Deletes an object that carries our uid.
fn removal(context: &Context, id: ObjectId, live: &Live) -> Option<Step> {
    let uid = context.observed.root.uid();
    let ours = live.annotation(labels::RESOURCE_UID_ANNOTATION) == Some(uid);
    if ours { delete(context, id, live) } else { None }
}

/// Deletes an object of ours that is not on its way already.
fn delete(context: &Context, id: ObjectId, live: &Live) -> Option<Step> {
    if live.deletion_time().is_some() || context.observed.trouble_of(&id).is_some() {
        return None;
    }
    Some(Step::Delete(Delete::of(id, live, "spec.deletionPolicy is Delete")))
}

/// A resource that goes is not accepted any more: its phase is the lowest.
fn transition(context: &Context) -> Option<Transition> {
    let before = context.status.phase;
    (before != Some(Phase::Pending)).then(|| Transition {
        from: before.map_or("", Phase::as_str).to_owned(),
        to: Phase::Pending.as_str().to_owned(),
        reason: reason::DELETING.name,
    })
}

fn deleting(context: &Context, message: &str) -> DatabaseStatus {
    let wanted = |kind, status| Wanted {
        kind,
        status,
        reason: reason::DELETING.name,
        message: message.to_owned(),
    };
    let conditions = vec![wanted("Ready", Truth::False), wanted("Progressing", Truth::True)];
    let generation = context.observed.root.metadata.generation;
    let moved = context.status.phase != Some(Phase::Pending);
    let since = Time(condition::whole_second(context.observed.now));
    let before = DatabaseStatus {
        phase: Some(Phase::Pending),
        phase_since: if moved { Some(since) } else { context.status.phase_since.clone() },
        ready: Some(false),
        observed_generation: generation,
        ..context.status.clone()
    };
    status::restate(before, generation, context.observed.now, conditions)
}
