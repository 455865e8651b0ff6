//! The label by which a pod's part is told: `primary` on ordinal 0, `standby` on the others.
//!
//! A template is the same for all, so the operator writes the label on each pod. Nothing else of a
//! pod is ever written.

use phased::step::{Apply, Expect};
use phased::{Live, Step};
use serde_json::json;

use super::blueprint::Blueprint;
use super::context::Tending;
use super::labels::{PRIMARY, ROLE_LABEL, STANDBY};
use crate::parts::members::Members;
use crate::parts::scene::Scene;

/// The part of an ordinal.
pub fn of(ordinal: u32) -> &'static str {
    if ordinal == 0 { PRIMARY } else { STANDBY }
}

/// Whether a pod carries the label of its part.
pub fn is_assigned(ordinal: u32, pod: &Live) -> bool {
    pod.label(ROLE_LABEL) == Some(of(ordinal))
}

/// Labels the pods of our own set that do not tell their part.
pub fn assign(tending: &mut Tending<'_>, blueprint: &Blueprint) {
    let context = tending.context;
    let Some(set) = context.seen(&context.names.stateful_set()) else { return };
    if phased::child::foreign(&set, &blueprint.owner()).is_some() {
        return;
    }
    for (ordinal, pod) in context.pods() {
        let made_by_it = pod.controller_owner().is_some_and(|owner| owner.uid == set.uid());
        if made_by_it && pod.deletion_time().is_none() && !is_assigned(ordinal, pod) {
            label(tending, ordinal, pod);
        }
    }
}

fn label(tending: &mut Tending<'_>, ordinal: u32, pod: &Live) {
    let id = tending.context.names.pod(ordinal);
    if let Some(trouble) = tending.context.observed.trouble_of(&id) {
        tending.refused(trouble);
        return;
    }
    let intent = json!({
        "apiVersion": id.kind.api_version(),
        "kind": id.kind.kind,
        "metadata": {
            "name": id.name,
            "namespace": id.namespace,
            "labels": {ROLE_LABEL: of(ordinal)},
        },
    });
    tending.judgement.steps.push(Step::Apply(Apply {
        id,
        intent,
        expect: Expect::Uid(pod.uid().to_owned()),
        why: format!("it plays the {}", of(ordinal)),
    }));
}
