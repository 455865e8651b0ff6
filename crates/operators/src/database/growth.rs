//! Growth of volumes: each claim is patched, then the StatefulSet is replaced under its pods by one
//! with the larger claim template, which cannot be changed in place.
//!
//! Each step is derived from what is there, so that a crash between any two costs nothing (fault
//! catalogue PG-31).

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use phased::child::Desired;
use phased::fact::{Question, Reply};
use phased::ladder::{Finding, Verdict};
use phased::quantity::Quantity;
use phased::step::{Delete, Propagation};
use phased::{Live, ObjectId, Step};
use serde_json::json;

use super::blueprint::Blueprint;
use super::context::Context;
use super::context::Tending;
use super::labels::RESOURCE_UID_ANNOTATION;
use super::{names, reason, record};
use crate::parts::members::Members;
use crate::parts::scene::{Scene, Sight};

/// How often a class that cannot be read is looked at again, in seconds.
const LOOK_AGAIN_SECONDS: i64 = 5;

/// What a claim asks for, as text and as an amount.
fn requested(claim: &Live) -> Option<(String, Quantity)> {
    let spec = claim.read::<PersistentVolumeClaim>().ok()?.spec?;
    let text = spec.resources?.requests?.get("storage")?.0.clone();
    let amount = text.parse().ok()?;
    Some((text, amount))
}

fn is_smaller(claim: &Live, size: &str) -> bool {
    let wanted = size.parse::<Quantity>().ok();
    matches!((requested(claim), wanted), (Some((_, has)), Some(wanted)) if has < wanted)
}

/// Claims of the servers that ask for less than they should.
fn small<'a>(context: &'a Context, blueprint: &'a Blueprint) -> impl Iterator<Item = &'a Live> {
    let all = context.claims().filter(|(ordinal, _)| *ordinal < blueprint.valid.replicas);
    all.map(|(_, claim)| claim).filter(|claim| is_smaller(claim, blueprint.size()))
}

/// What is known of a claim's class.
enum Class {
    Expands,
    Refuses(String),
    Unasked(Question),
    Unread(String),
}

fn class_of(context: &Context, claim: &Live) -> Class {
    let spec = claim.read::<PersistentVolumeClaim>().ok().and_then(|claim| claim.spec);
    let Some(class) = spec.and_then(|s| s.storage_class_name).filter(|name| !name.is_empty())
    else {
        return Class::Refuses(
            "it has no storage class, so nobody could grow its volume".to_owned(),
        );
    };
    let question = Question::Object(ObjectId::new(names::storage_class_kind(), "", class.clone()));
    match context.observed.facts.get(&question) {
        None => Class::Unasked(question),
        Some(Ok(Reply::Object(Some(live)))) => match live.read::<StorageClass>() {
            Ok(found) if found.allow_volume_expansion == Some(true) => Class::Expands,
            _ => Class::Refuses(format!("its storage class {class:?} does not allow expansion")),
        },
        Some(Ok(_)) => Class::Refuses(format!("its storage class {class:?} does not exist")),
        Some(Err(trouble)) => Class::Unread(trouble.message.clone()),
    }
}

/// Says, in the lowest rung, that a class cannot expand; the rest of the spec is in force.
pub fn judge(tending: &mut Tending<'_>) {
    let context = tending.context;
    let Some(blueprint) = context.blueprint.as_ref().filter(|b| b.growth.is_some()) else { return };
    for claim in small(context, blueprint) {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        match class_of(context, claim) {
            Class::Expands => {}
            Class::Unasked(question) => {
                tending.ask(question);
            }
            Class::Refuses(why) => {
                let message = format!(
                    "spec.storage.size: claim {name} cannot grow to {}: {why}; write {} again, or \
                     let the class expand",
                    blueprint.size(),
                    blueprint.valid.size
                );
                let finding = Finding::new(&reason::STORAGE_EXPANSION_REFUSED, message);
                tending.note(None, finding.clone());
                tending.judge(Verdict::Blocked(finding));
                tending.wake_after(30);
                return;
            }
            Class::Unread(why) => {
                let message = format!("the storage class of claim {name}: {why}");
                let finding = Finding::new(&reason::READ_FAILED, message);
                tending.wait(finding, "Readable", LOOK_AGAIN_SECONDS);
            }
        }
    }
}

/// Says by annotation whose the claims are, so that the deletion policy touches only our own, and
/// what their data were made with; and asks for the size that they should have. Only those that our
/// own set mounts become ours (fault catalogue PG-01).
pub fn tend_claims(tending: &mut Tending<'_>, blueprint: &Blueprint) {
    let context = tending.context;
    for (ordinal, live) in context.claims() {
        let ours = phased::child::foreign(live, &blueprint.owner()).is_none();
        let wanted = ordinal < blueprint.valid.replicas;
        let small = wanted && is_smaller(live, blueprint.size());
        // A claim that somebody made smaller beforehand, of a class that cannot expand, is served as
        // it is.
        let grows = small
            && match class_of(context, live) {
                Class::Expands => true,
                Class::Refuses(_) | Class::Unread(_) => false,
                Class::Unasked(question) => {
                    tending.ask(question);
                    false
                }
            };
        let going = live.deletion_time().is_some() || is_superfluous(context, blueprint, ordinal);
        if !ours || going {
            continue;
        }
        let id = context.names.claim(ordinal);
        tending.apply(&claim(blueprint, ordinal, live, grows));
        if grows {
            // Until the set's template says so too, this generation is not in force.
            let size = blueprint.size();
            tending.work(
                &reason::GROWING_VOLUMES,
                &format!("{id} is asked to grow to {size}"),
                &format!("{id} is not asked to grow to {size}"),
            );
        }
    }
}

/// What we declare of a claim. Every write declares its size, for a size that is no longer declared
/// would be taken away.
fn claim(blueprint: &Blueprint, ordinal: u32, live: &Live, grows: bool) -> Desired {
    let mut annotations = json!({RESOURCE_UID_ANNOTATION: blueprint.uid});
    if ordinal == 0 {
        annotations[record::DATABASE.annotation] = json!(blueprint.valid.database);
        annotations[record::USERNAME.annotation] = json!(blueprint.valid.username);
    }
    let size = match requested(live) {
        Some((text, _)) if !grows => text,
        _ => blueprint.size().to_owned(),
    };
    let body = json!({
        "metadata": {"annotations": annotations},
        "spec": {"resources": {"requests": {"storage": size}}},
    });
    blueprint.kept(blueprint.names.claim(ordinal), body)
}

/// Whether the spec asks for the volume of an ordinal to go.
fn is_superfluous(context: &Context, blueprint: &Blueprint, ordinal: u32) -> bool {
    ordinal >= blueprint.valid.replicas && context.observed.resource.may_lose_volumes()
}

/// Deletes the volumes of standbys that are gone, where the deletion policy says so.
pub fn drop_claims(tending: &mut Tending<'_>, blueprint: &Blueprint) {
    let context = tending.context;
    let Some(set) = context.stateful_set() else { return };
    let seen = set.status.as_ref().and_then(|s| s.observed_generation) >= set.metadata.generation;
    let count = set.spec.and_then(|spec| spec.replicas).unwrap_or(1);
    for (ordinal, live) in context.claims() {
        let unused = seen && i64::from(count) <= i64::from(ordinal);
        let ours = live.annotation(RESOURCE_UID_ANNOTATION) == Some(blueprint.uid.as_str());
        let id = context.names.claim(ordinal);
        if !(unused && ours && is_superfluous(context, blueprint, ordinal))
            || live.deletion_time().is_some()
            || context.observed.trouble_of(&id).is_some()
        {
            continue;
        }
        // The watch shows by labels, so that the pod is gone is read before anything rests on it.
        match context.sight(&context.names.pod(ordinal)) {
            Sight::Absent => {}
            Sight::Unasked(question) => {
                tending.ask(question);
                continue;
            }
            Sight::Seen(_) | Sight::Unread(_) => continue,
        }
        let why = "its standby is gone, and spec.deletionPolicy is Delete";
        tending.judgement.steps.push(Step::Delete(Delete::of(id, live, why)));
    }
}

/// Replaces the set under its pods once every claim asks for the new size. Answers whether it does.
pub fn replace_set(tending: &mut Tending<'_>, blueprint: &Blueprint, set: &Live) -> bool {
    let context = tending.context;
    let Some(size) = &blueprint.growth else { return false };
    if small(context, blueprint).next().is_some() || context.claims().next().is_none() {
        return false;
    }
    let id = context.names.stateful_set();
    if let Some(trouble) = context.observed.trouble_of(&id) {
        tending.refused(trouble);
        return true;
    }
    let why = format!("its claim template is to ask for {size}; pods and claims stay");
    tending.judgement.steps.push(Step::Delete(Delete {
        resource_version: Some(set.resource_version().to_owned()),
        propagation: Propagation::Orphan,
        ..Delete::of(id.clone(), set, why.clone())
    }));
    tending.work(
        &reason::GROWING_VOLUMES,
        &format!("{id} is made anew: {why}"),
        &format!("{id} is not made anew, although {why}"),
    );
    true
}

/// Volumes whose growth is asked for and not done yet, in words.
pub fn pending(context: &Context) -> Option<String> {
    context.claims().find_map(|(ordinal, claim)| {
        let (text, wanted) = requested(claim)?;
        let status = claim.read::<PersistentVolumeClaim>().ok()?.status?;
        let has: Quantity = status.capacity?.get("storage")?.0.parse().ok()?;
        let conditions = status.conditions.unwrap_or_default();
        let said = conditions.into_iter().find_map(|c| c.message.filter(|m| !m.is_empty()));
        let said = said.map_or_else(String::new, |words| format!(": {words}"));
        (has < wanted).then(|| format!("{} grows to {text}{said}", context.names.claim(ordinal)))
    })
}
