//! A StatefulSet's pods: identity, creation, and what "ready" and "available" mean for them.
//!
//! Must not decide which pod is next; that is `rollout`'s.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::claims;
use super::revision::pod_revision;
use crate::Failure;
use crate::builtin::door::{Door, PODS};
use crate::builtin::field;

/// A place in the set: a pod that exists, or one to be created.
pub(super) struct Replica {
    pub(super) pod: Value,
    pub(super) exists: bool,
}

impl Replica {
    pub(super) fn failed(&self) -> bool {
        self.exists && matches!(field::text(&self.pod, "/status/phase"), "Failed" | "Succeeded")
    }

    pub(super) fn pending(&self) -> bool {
        self.exists && field::text(&self.pod, "/status/phase") == "Pending"
    }

    pub(super) fn terminating(&self) -> bool {
        field::deleting(&self.pod)
    }

    pub(super) fn ready(&self) -> bool {
        self.exists && running_and_ready(&self.pod)
    }

    pub(super) fn available(&self, now: Timestamp, min_ready_seconds: i64) -> bool {
        self.exists && running_and_available(&self.pod, now, min_ready_seconds)
    }

    pub(super) fn unavailable(&self, now: Timestamp, min_ready_seconds: i64) -> bool {
        !self.available(now, min_ready_seconds) || self.terminating()
    }

    pub(super) fn revision(&self) -> &str {
        pod_revision(&self.pod)
    }
}

pub(super) fn running_and_ready(pod: &Value) -> bool {
    field::text(pod, "/status/phase") == "Running" && field::is_true(pod, "Ready")
}

pub(super) fn running_and_available(pod: &Value, now: Timestamp, min_ready_seconds: i64) -> bool {
    if !running_and_ready(pod) {
        return false;
    }
    min_ready_seconds == 0 || available_at(pod, min_ready_seconds).is_some_and(|at| at < now)
}

/// When a ready pod becomes available.
pub(super) fn available_at(pod: &Value, min_ready_seconds: i64) -> Option<Timestamp> {
    let since = field::time(field::condition(pod, "Ready")?, "/lastTransitionTime")?;
    since.checked_add(SignedDuration::from_secs(min_ready_seconds)).ok()
}

/// The ordinal of a pod named `<set>-<ordinal>`; none when the name is another's.
pub(super) fn ordinal(set: &Value, pod: &Value) -> Option<i64> {
    let rest = field::name(pod).strip_prefix(field::name(set))?.strip_prefix('-')?;
    let digits = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| rest.parse().ok()).flatten()
}

/// The pod that `set` (with the template of `revision`) wants at `ordinal`.
pub(super) fn wanted(set: &Value, revision: &str, ordinal: i64) -> Value {
    let name = format!("{}-{ordinal}", field::name(set));
    let mut labels = field::map(set, "/spec/template/metadata/labels");
    labels.insert("statefulset.kubernetes.io/pod-name".into(), json!(name));
    labels.insert("apps.kubernetes.io/pod-index".into(), json!(ordinal.to_string()));
    labels.insert("controller-revision-hash".into(), json!(revision));
    let mut metadata = Map::new();
    metadata.insert("name".into(), json!(name));
    // GetPodFromTemplate sets it; the name wins, and the server keeps both.
    metadata.insert("generateName".into(), json!(format!("{}-", field::name(set))));
    metadata.insert("namespace".into(), json!(field::namespace(set)));
    metadata.insert("labels".into(), Value::Object(labels));
    metadata.insert("ownerReferences".into(), json!([field::owner_reference(set, true)]));
    for kept in ["annotations", "finalizers"] {
        if let Some(value) = set.pointer(&format!("/spec/template/metadata/{kept}")) {
            metadata.insert(kept.into(), value.clone());
        }
    }
    let mut spec = field::map(set, "/spec/template/spec");
    spec.insert("hostname".into(), json!(name));
    let service = field::text(set, "/spec/serviceName");
    if !service.is_empty() {
        spec.insert("subdomain".into(), json!(service));
    }
    let volumes = claims::volumes(set, ordinal);
    if !volumes.is_empty() {
        spec.insert("volumes".into(), Value::Array(volumes));
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

/// Creates the claims, then the pod; says both in Events on the set.
pub(super) fn create(
    door: &mut Door,
    set: &Value,
    pod: &Value,
    ordinal: i64,
) -> Result<Value, Failure> {
    if let Err(failure) = claims::create_missing(door, set, pod, ordinal) {
        told(door, set, pod, "create", Some(&failure));
        return Err(failure);
    }
    let made = door.create(PODS, field::namespace(set), pod.clone());
    match &made {
        Ok(made) => {
            told(door, set, made, "create", None);
            claims::retain(door, set, ordinal, false)?;
        }
        Err(failure) if failure.reason == "AlreadyExists" => {}
        Err(failure) => told(door, set, pod, "create", Some(failure)),
    }
    made
}

/// Asks for a pod's graceful deletion; an absent pod is success.
pub(super) fn delete(door: &mut Door, set: &Value, pod: &Value) -> Result<(), Failure> {
    match door.delete(PODS, pod) {
        Ok(()) => told(door, set, pod, "delete", None),
        Err(failure) if failure.reason == "NotFound" => {}
        Err(failure) => {
            told(door, set, pod, "delete", Some(&failure));
            return Err(failure);
        }
    }
    Ok(())
}

/// Whether labels, host name and volumes are those of the set.
pub(super) fn identity_matches(set: &Value, pod: &Value) -> bool {
    let Some(ordinal) = ordinal(set, pod) else { return false };
    let name = field::name(pod);
    let label = field::text(pod, "/metadata/labels/statefulset.kubernetes.io~1pod-name") == name;
    label && claims::volumes_match(set, pod, ordinal)
}

/// Restores the identity labels of a pod.
pub(super) fn restore(door: &mut Door, set: &Value, pod: &Value) -> Result<(), Failure> {
    let Some(ordinal) = ordinal(set, pod) else { return Ok(()) };
    let mut fixed = pod.clone();
    let name = field::name(pod).to_owned();
    fixed["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
    fixed["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
    let result = door.update(PODS, fixed);
    told(door, set, pod, "update", result.as_ref().err());
    result.map(|_| ())
}

fn told(door: &mut Door, set: &Value, pod: &Value, verb: &str, failure: Option<&Failure>) {
    let title = match verb {
        "create" => "Create",
        "delete" => "Delete",
        _ => "Update",
    };
    let what = format!("{title} Pod {} in StatefulSet {}", field::name(pod), field::name(set));
    match failure {
        None => {
            door.event(set, "Normal", &format!("Successful{title}"), &format!("{what} successful"))
        }
        Some(failure) => door.event(
            set,
            "Warning",
            &format!("Failed{title}"),
            &format!("{what} failed error: {}", failure.message),
        ),
    }
}
