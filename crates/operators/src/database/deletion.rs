//! Deletion: what `spec.deletionPolicy` asks for, then our finalizer goes.
//!
//! Nothing is created any more. Only what carries this resource's uid is deleted, so that the loser
//! of a name clash removes nothing of the winner's (fault catalogue PG-01). The StatefulSet and
//! the other owned children are the garbage collector's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use phased::condition::{self, Truth, Wanted};
use phased::fact::Fate;
use phased::plan::{Note, Transition};
use phased::step::{Delete, Finalizer, Propagation};
use phased::{Live, ObjectId, Plan, Step, Wake};

use super::api::{DatabaseStatus, DeletionPolicy, Phase};
use super::context::{Context, Sight};
use super::{FINALIZER, labels, names, reason, status};

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
    if policy == DeletionPolicy::Delete && !orphaning {
        for id in doomed(context) {
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

/// Everything that may be deleted: by name, and by the labels that volumes carry.
fn doomed(context: &Context) -> Vec<ObjectId> {
    let names = &context.names;
    let mut all = vec![names.data_claim(), names.superuser_secret(), names.replication_secret()];
    let labelled = context.observed.of_kind(names::claim_kind()).map(|(id, _)| id.clone());
    let others: Vec<ObjectId> = labelled.filter(|id| !all.contains(id)).collect();
    all.extend(others);
    all
}

/// Deletes an object that carries our uid and is not on its way already.
fn removal(context: &Context, id: ObjectId, live: &Live) -> Option<Step> {
    let uid = context.observed.root.uid();
    let ours = live.annotation(labels::RESOURCE_UID_ANNOTATION) == Some(uid);
    if !ours || live.deletion_time().is_some() || context.observed.trouble_of(&id).is_some() {
        return None;
    }
    Some(Step::Delete(Delete {
        id,
        uid: live.uid().to_owned(),
        resource_version: None,
        propagation: Propagation::Background,
        why: "spec.deletionPolicy is Delete".to_owned(),
    }))
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
