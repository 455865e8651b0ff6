//! The rungs `Pending` and `Provisioning`: acceptance, and the children in the order in which they
//! need each other.

use phased::child::{self, Desired, Standing};
use phased::ladder::{Finding, Judgement, Verdict};
use phased::step::{Delete, Finalizer};
use phased::{ObjectId, Step};

use super::api::Phase;
use super::blueprint::Blueprint;
use super::context::{Context, Tending};
use super::{FINALIZER, config, reason, servers, services};
use crate::parts::refusal;
use crate::parts::scene::Scene;

/// How often what waits for the servers is looked at, in seconds.
const LOOK_AGAIN_SECONDS: i64 = 5;

/// `Pending`: spec valid, nothing held back, the finalizer where one is needed.
pub fn accept(context: &Context) -> Judgement {
    let mut tending = Tending::new(context);
    if context.paused() && matches!(context.status.phase, None | Some(Phase::Pending)) {
        let message = "the annotation steadfast.dev/paused is \"true\"; remove it to go on";
        tending.judge(Verdict::Blocked(Finding::new(&reason::PAUSED, message)));
        return tending.judgement;
    }
    if !context.refusals.is_empty() {
        let message = refusal::sentence(&context.refusals);
        tending.judge(Verdict::Blocked(Finding::new(&reason::INVALID_SPEC, message)));
        return tending.judgement;
    }
    for finding in &context.held {
        tending.note(None, finding.clone());
        tending.judge(Verdict::Blocked(finding.clone()));
    }
    finalize(&mut tending);
    // Asked here, since the next rung gets no answers when it merely tends.
    let asks = context.sizing.asks.iter().chain(&context.rolling.asks);
    tending.judgement.asks.extend(asks.cloned());
    if !tending.judgement.asks.is_empty() {
        tending.judge(Verdict::Asking);
    }
    tending.judgement
}

/// The finalizer is there while volumes are to go with the resource, and only then.
fn finalize(tending: &mut Tending<'_>) {
    let context = tending.context;
    let Some(blueprint) = &context.blueprint else { return };
    let finalizers = context.observed.root.metadata.finalizers.iter().flatten();
    let present = finalizers.into_iter().any(|f| f == FINALIZER);
    let wanted = blueprint.valid.reclaims();
    if present == wanted {
        return;
    }
    let resource = super::resource_id(&context.names);
    let trouble = context.observed.troubles.iter().find(|t| t.id == resource && t.verb == "patch");
    if let Some(trouble) = trouble {
        tending.refused(trouble);
        return;
    }
    let step = if wanted { Finalizer::Add(FINALIZER) } else { Finalizer::Remove(FINALIZER) };
    if wanted {
        tending.judgement.steps.push(Step::Finalizer(step));
        tending.work(
            &reason::ACCEPTING,
            "the finalizer is put on before anything is created",
            "the finalizer is not put on",
        );
    } else {
        // A plan ends with the removal of a finalizer; the others of its steps come first.
        tending.judgement.steps.push(Step::Finalizer(step));
    }
}

/// `Provisioning`: everything that pods need exists before the StatefulSet that makes them.
pub fn provision(context: &Context) -> Judgement {
    let mut tending = Tending::new(context);
    let Some(blueprint) = &context.blueprint else { return tending.judgement };
    provide_account(&mut tending, blueprint);
    keep(&mut tending, &config::config_map(blueprint));
    tending.apply(&services::headless(blueprint));
    tending.apply(&services::client(blueprint));
    tending.apply(&services::admin(blueprint));
    tending.apply(&services::budget(blueprint));
    if tending.may_go_on() || context.recorded.exists {
        keep(&mut tending, &servers::stateful_set(blueprint));
    }
    resize(&mut tending, blueprint);
    tending.judgement
}

/// An account that somebody else made is used as it is (reference: two clusters may share one).
fn provide_account(tending: &mut Tending<'_>, blueprint: &Blueprint) {
    let Some(desired) = services::account(blueprint) else { return };
    let context = tending.context;
    let foreign = context.seen(&desired.id).and_then(|live| {
        let owner = child::foreign(&live, &context.owner())?;
        (!context.is_former(&live)).then_some(owner)
    });
    match foreign {
        Some(owner) if blueprint.valid.pod.image_pull_secrets.is_empty() => {
            let _ = owner;
        }
        Some(owner) => {
            let message = format!(
                "{} belongs to somebody else ({owner}), so spec.pod.imagePullSecrets are not put on it",
                desired.id
            );
            tending
                .note(Some(desired.id.clone()), Finding::new(&reason::ACCOUNT_NOT_OURS, message));
        }
        None => {
            tending.apply(&desired);
        }
    }
}

/// Brings a child about; but of a failed upgrade's set and configuration, what is there stays as it
/// is, and what differs is told as held.
fn keep(tending: &mut Tending<'_>, desired: &Desired) {
    let context = tending.context;
    let live = context.seen(&desired.id);
    let stands = desired.stand(live.as_ref(), &context.owner());
    match stands {
        Standing::Outdated { step: Step::Apply(apply), .. } if context.is_failed() => {
            hold(tending, &desired.id, &apply.why);
        }
        Standing::Outdated { .. }
        | Standing::Missing(_)
        | Standing::Current
        | Standing::Foreign { .. }
        | Standing::Terminating => {
            tending.apply(desired);
        }
    }
}

fn hold(tending: &mut Tending<'_>, id: &ObjectId, why: &str) {
    let message =
        format!("{id} is left as it is until the upgrade is over or the image is changed: {why}");
    tending.note(Some(id.clone()), Finding::new(&reason::EDIT_HELD, message));
}

/// What the wanted size and the next pod of a roll wait for, and what is done about it.
fn resize(tending: &mut Tending<'_>, blueprint: &Blueprint) {
    let context = tending.context;
    if context.is_failed() && context.recorded.count.is_some_and(|c| c != blueprint.valid.replicas)
    {
        let wanted = blueprint.valid.replicas;
        hold(tending, &context.names.stateful_set(), &format!("spec.replicas is to be {wanted}"));
        return;
    }
    tending.judgement.asks.extend(context.sizing.asks.iter().cloned());
    tending.judgement.asks.extend(context.rolling.asks.iter().cloned());
    if !context.sizing.asks.is_empty() || !context.rolling.asks.is_empty() {
        tending.judge(Verdict::Asking);
    }
    let refused = tending
        .context
        .observed
        .troubles
        .iter()
        .find(|t| super::size::ACTIONS.contains(&t.verb.as_str()));
    if let Some(trouble) = refused {
        tending.refused(trouble);
    } else {
        tending.judgement.steps.extend(context.sizing.actions.iter().cloned().map(Step::Act));
    }
    discard(tending, context.sizing.deletes.clone());
    if let Some(finding) = &context.sizing.blocked {
        tending.judge(Verdict::Blocked(finding.clone()));
        tending.note(None, finding.clone());
    }
    if let Some(finding) = &context.sizing.waits {
        tending.wait(finding.clone(), super::size::GATE, LOOK_AGAIN_SECONDS);
    }
}

/// Deletes claims of members that left.
pub(super) fn discard(tending: &mut Tending<'_>, deletes: Vec<Delete>) {
    for delete in deletes {
        match tending.context.observed.trouble_of(&delete.id) {
            Some(trouble) => tending.refused(trouble),
            None => tending.judgement.steps.push(Step::Delete(delete)),
        }
    }
}
