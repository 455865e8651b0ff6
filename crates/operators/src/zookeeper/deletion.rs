//! Deletion: with `reclaimPolicy: Delete` the volumes go, then our finalizer does.
//!
//! Talks to no server, and creates nothing any more (fault catalogue ZK-06). Only claims that carry
//! this resource's uid are deleted, and only after the set and its pods are gone: a set that still
//! runs would make a deleted claim again. The other children are the garbage collector's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use phased::child;
use phased::condition::{Truth, whole_second};
use phased::fact::Fate;
use phased::plan::{Note, Transition};
use phased::step::{Delete, Finalizer};
use phased::{Plan, Question, Step, Wake};

use super::api::{Phase, ReclaimPolicy, ZookeeperClusterStatus};
use super::context::Context;
use super::{FINALIZER, reason, status};
use crate::parts::members::Members;
use crate::parts::scene::{Scene, Sight};
use crate::parts::stored::wanted;

/// Finalizer by which a client asks that dependants stay.
const ORPHAN: &str = "orphan";

/// What is still to be done before the finalizer may go.
enum Left {
    /// Not known before this question is answered.
    Asks(Question),
    /// Steps, and what is waited for.
    Work(Vec<Step>, String),
    /// Nothing.
    Nothing,
}

/// Plans for a resource that is being deleted.
pub fn plan(context: &Context) -> Plan {
    let finalizers = context.observed.root.metadata.finalizers.clone().unwrap_or_default();
    let now = context.observed.now;
    if !finalizers.iter().any(|f| f == FINALIZER) {
        // Others hold it: a change of the resource wakes, and the time is only a safety net.
        return Plan { wake: Wake::after(now, 60), ..Plan::idle() };
    }
    // The policy as it is now: whoever sets Retain on the way out keeps what is left (ZK-32).
    let persistence = context.observed.resource.spec.persistence.clone().unwrap_or_default();
    let goes = persistence.reclaim_policy == ReclaimPolicy::Delete;
    let left =
        if goes && !finalizers.iter().any(|f| f == ORPHAN) { left(context) } else { Left::Nothing };
    match left {
        Left::Asks(question) => Plan { asks: vec![question], wake: Wake::Now, ..Plan::idle() },
        Left::Work(steps, message) => waiting(context, steps, message),
        Left::Nothing => released(context),
    }
}

/// The set first, then its pods, then the claims.
fn left(context: &Context) -> Left {
    let id = context.set_id();
    match context.sight(&id) {
        Sight::Unasked(question) => return Left::Asks(question),
        Sight::Unread(trouble) => {
            return Left::Work(Vec::new(), format!("{id}: {}", trouble.message));
        }
        Sight::Seen(live) if child::foreign(&live, &context.owner()).is_none() => {
            let message = format!("{id} is being deleted before its volumes are");
            let due = live.deletion_time().is_none() && context.observed.trouble_of(&id).is_none();
            let step = Delete::of(id, &live, "persistence.reclaimPolicy is Delete");
            return Left::Work(due.then_some(Step::Delete(step)).into_iter().collect(), message);
        }
        Sight::Seen(_) | Sight::Absent => {}
    }
    if let Some((ordinal, _)) = context.pods().next_back() {
        let pod = context.pod_id(ordinal);
        return Left::Work(Vec::new(), format!("{pod} must be gone before its volume is deleted"));
    }
    claims(context)
}

fn claims(context: &Context) -> Left {
    let uid = context.observed.root.uid();
    let ours: Vec<_> =
        context.claims().filter(|(_, claim)| claim.label("uid") == Some(uid)).collect();
    let Some((ordinal, _)) = ours.first() else { return Left::Nothing };
    let message = format!("{} is being deleted", context.claim_id(*ordinal));
    let due = ours.iter().filter(|(ordinal, claim)| {
        let troubled = context.observed.trouble_of(&context.claim_id(*ordinal)).is_some();
        claim.deletion_time().is_none() && !troubled
    });
    let delete = |(ordinal, claim): &(u32, &phased::Live)| {
        let id = context.claim_id(*ordinal);
        Step::Delete(Delete::of(id, claim, "persistence.reclaimPolicy is Delete"))
    };
    Left::Work(due.map(delete).collect(), message)
}

fn released(context: &Context) -> Plan {
    let message = "the finalizer goes; nothing is left to clean up".to_owned();
    Plan {
        steps: vec![Step::Finalizer(Finalizer::Remove(FINALIZER))],
        notes: vec![note(context, message)],
        wake: Wake::after(context.observed.now, 5),
        ..Plan::idle()
    }
}

fn waiting(context: &Context, steps: Vec<Step>, message: String) -> Plan {
    let trouble = context.observed.troubles.first();
    let seconds = match trouble.map(|t| t.trouble.fate) {
        Some(Fate::UserMustAct) => 30,
        Some(Fate::WorldMayHeal | Fate::WeAreWrong) | None => 5,
    };
    let message =
        trouble.map_or(message, |t| format!("{} {}: {}", t.verb, t.id, t.trouble.message));
    let before = context.status.phase;
    let transition = (before != Some(Phase::Pending)).then(|| Transition {
        from: before.map_or("", Phase::as_str).to_owned(),
        to: Phase::Pending.as_str().to_owned(),
        reason: reason::DELETING.name,
    });
    Plan {
        steps,
        status: status::write(&context.observed.root, &deleting(context, &message)),
        transition,
        notes: vec![note(context, message)],
        wake: Wake::after(context.observed.now, seconds),
        ..Plan::idle()
    }
}

fn note(context: &Context, message: String) -> Note {
    Note { about: Some(super::resource_id(&context.names)), reason: &reason::DELETING, message }
}

fn deleting(context: &Context, message: &str) -> ZookeeperClusterStatus {
    let told = |kind, truth| wanted(kind, truth, &reason::DELETING, message);
    let conditions = vec![told("Ready", Truth::False), told("Progressing", Truth::True)];
    let generation = context.observed.root.metadata.generation;
    let now = context.observed.now;
    let stays = context.status.phase == Some(Phase::Pending);
    let kept = context.status.phase_since.clone().filter(|_| stays);
    let before = ZookeeperClusterStatus {
        phase: Some(Phase::Pending),
        phase_since: kept.or_else(|| Some(Time(whole_second(now)))),
        observed_generation: generation,
        ..context.status.clone()
    };
    status::restate(before, generation, now, conditions)
}
