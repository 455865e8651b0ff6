//! Pods and claims that a changed label hides: from the watch, which selects by labels, and from
//! their StatefulSet, which lets go of a pod that its selector does not match and then cannot make
//! another one of that name.
//!
//! The label is put back, which the set answers by adopting the pod again; nothing restarts. Must not
//! decide what labels a controller's pods carry.

use std::collections::BTreeMap;

use phased::child::{Drift, foreign};
use phased::compare::Path;
use phased::step::{Apply, Expect};
use phased::{Live, Step, ownership};
use serde_json::json;

use super::causes::Cause;
use super::members::{Members, REVISION_LABEL};
use super::reason;
use super::scene::Sight;
use super::tending::Tending;

/// Asks for the pods and claims of the first `count` ordinals that the watch does not show: they may
/// be there all the same, under other labels.
pub(crate) fn ask<S: Members>(tending: &mut Tending<'_, S>, count: u32) {
    let context = tending.context;
    for id in (0..count).flat_map(|n| [context.pod_id(n), context.claim_id(n)]) {
        if let Sight::Unasked(question) = context.sight(&id) {
            tending.ask(question);
        }
    }
}

/// Whether the pod was made by our StatefulSet for this ordinal and has no controller any more. That
/// it was ours is told by its claim, which carries our mark and which the pod mounts: names, labels
/// and revisions another's StatefulSet may have as well.
pub(crate) fn is_released<S: Members>(context: &S, ordinal: u32, pod: &Live) -> bool {
    let claim = context.claim_id(ordinal).name;
    let volumes = pod.value["spec"]["volumes"].as_array();
    let mounts = volumes
        .into_iter()
        .flatten()
        .any(|volume| volume["persistentVolumeClaim"]["claimName"] == claim.as_str());
    let marked = context.claim(ordinal).is_some_and(|claim| context.is_marked(claim));
    pod.controller_owner().is_none() && pod.label(REVISION_LABEL).is_some() && mounts && marked
}

/// The StatefulSet, if it is ours.
fn own_set<S: Members>(context: &S) -> Option<&Live> {
    let set = context.known(&context.set_id())?;
    foreign(set, &context.owner()).is_none().then_some(set)
}

/// Whether the pod is our set's, or was and was let go. Anybody else's is never touched.
pub(crate) fn is_ours<S: Members>(context: &S, ordinal: u32, pod: &Live) -> bool {
    match (pod.controller_owner(), own_set(context)) {
        (Some(owner), Some(set)) => owner.uid == set.uid(),
        (Some(_), None) => false,
        (None, _) => is_released(context, ordinal, pod),
    }
}

/// Brings the pods of our own set, and those that it let go, under the labels that `wanted` gives for
/// their ordinal.
pub(crate) fn restore_labels<S: Members>(
    tending: &mut Tending<'_, S>,
    wanted: impl Fn(u32) -> BTreeMap<String, String>,
) {
    let context = tending.context;
    let Some(set) = own_set(context) else { return };
    for (ordinal, pod) in context.pods() {
        if pod.deletion_time().is_some() || !is_ours(context, ordinal, pod) {
            continue;
        }
        let labels = wanted(ordinal);
        if let Some((key, value)) = differing::<S>(pod, &labels) {
            let why = match drift::<S>(set, pod, key) {
                Some(drift) => {
                    let why = format!("{} differs, set by {}", drift.field, drift.manager);
                    tending.reverted(&context.pod_id(ordinal), &drift);
                    why
                }
                None => format!("it is to carry {key}={value}"),
            };
            label(tending, ordinal, pod, &labels, why);
        }
    }
}

/// The first label that a pod lacks or has with another value. One that we hold was changed on its way
/// into the store; sending it again would change nothing (fault catalogue G-28).
pub(crate) fn differing<'a, S: Members>(
    pod: &Live,
    wanted: &'a BTreeMap<String, String>,
) -> Option<(&'a str, &'a str)> {
    let not_kept = |key: &str| ownership::is_held_by(pod, &path_of(key), S::MANAGER);
    let all = wanted.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    all.into_iter().find(|(key, value)| pod.label(key) != Some(value) && !not_kept(key))
}

fn path_of(label: &str) -> Path {
    ["metadata", "labels", label].iter().fold(Path::default(), |at, name| at.field(name))
}

/// Who changed a label. One that is absent was taken away only if it was ever there: from the
/// template, or by an earlier write of ours.
fn drift<S: Members>(set: &Live, pod: &Live, key: &str) -> Option<Drift> {
    let template = &set.value["spec"]["template"]["metadata"]["labels"];
    let mut managers = pod.metadata.managed_fields.iter().flatten();
    let written = managers.any(|entry| entry.manager.as_deref() == Some(S::MANAGER));
    if pod.label(key).is_none() && template.get(key).is_none() && !written {
        return None;
    }
    Some(Drift::of(pod, &path_of(key), S::MANAGER))
}

fn label<S: Members>(
    tending: &mut Tending<'_, S>,
    ordinal: u32,
    pod: &Live,
    labels: &BTreeMap<String, String>,
    why: String,
) {
    let id = tending.context.pod_id(ordinal);
    if let Some(trouble) = tending.context.observed().trouble_of(&id) {
        tending.refused(trouble);
        return;
    }
    let intent = json!({
        "apiVersion": id.kind.api_version(),
        "kind": id.kind.kind,
        "metadata": {"name": id.name, "namespace": id.namespace, "labels": labels},
    });
    let expect = Expect::Uid(pod.uid().to_owned());
    tending.judgement.steps.push(Step::Apply(Apply { id, intent, expect, why }));
}

/// Why a pod that has an ordinal's name is of no use to the set: it is not the set's. Whether the
/// server in it runs does not matter, since the set does not count it and cannot make its own.
pub(crate) fn stranger<S: Members>(context: &S, ordinal: u32) -> Option<Cause> {
    let set = context.known(&context.set_id())?;
    let pod = context.pod(ordinal).filter(|pod| pod.deletion_time().is_none())?;
    let name = context.pod_id(ordinal).name;
    let needed = "has the name that the StatefulSet needs for its own; remove it";
    let message = match pod.controller_owner() {
        Some(owner) if owner.uid == set.uid() => return None,
        Some(owner) if owner.kind == "StatefulSet" && owner.name == context.name() => {
            let message = format!(
                "pod {name} belongs to a former StatefulSet (uid {}) and is not gone yet",
                owner.uid
            );
            return Some(Cause::passing(&reason::CHILD_TERMINATING, message));
        }
        Some(owner) => format!("pod {name} belongs to {} {} and {needed}", owner.kind, owner.name),
        None if is_released(context, ordinal, pod) => {
            let selector = set.value["spec"]["selector"]["matchLabels"].as_object()?;
            let (key, value) =
                selector.iter().find(|(key, value)| pod.label(key) != value.as_str())?;
            let value = value.as_str().unwrap_or_default();
            format!(
                "pod {name} is not the StatefulSet's any more, since it does not carry the label \
                 {key}={value}"
            )
        }
        None => format!("pod {name} was made by somebody else and {needed}"),
    };
    Some(Cause::passing(&reason::NAME_CONFLICT, message))
}
