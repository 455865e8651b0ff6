//! Pods and claims as a forecast plays them: made from a template, then ready.
//!
//! Must not decide when; [`crate::workload`] does.

use jiff::Timestamp;
use phased::{Live, ObjectId};
use serde_json::{Value, json};

use crate::world::second;

/// Label with the revision that a pod was made from.
pub const REVISION_LABEL: &str = "controller-revision-hash";

/// Words of the kubelet for a container that does not start by waiting.
const STUCK: [&str; 9] = [
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "StartError",
];

/// Whether a pod is ready.
pub fn is_ready(pod: &Live) -> bool {
    has_condition(pod, "Ready", "True")
}

/// Whether a pod that is not ready may get so by itself: nothing says that it is stuck.
pub fn may_start(pod: &Live) -> bool {
    let status = &pod.value["status"];
    let containers = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .flat_map(|list| status[list].as_array().into_iter().flatten());
    let mut waiting = containers.filter_map(|c| c["state"]["waiting"]["reason"].as_str());
    let stuck = waiting.any(|reason| STUCK.contains(&reason));
    let homeless = has_condition(pod, "PodScheduled", "False");
    let ended = status["phase"] == "Failed";
    // One that ran and is not ready is held up by its probe.
    let unwell = status["phase"] == "Running" && has_condition(pod, "Ready", "False");
    !(stuck || homeless || ended || unwell)
}

fn has_condition(pod: &Live, kind: &str, truth: &str) -> bool {
    let all = pod.value["status"]["conditions"].as_array();
    all.into_iter().flatten().any(|c| c["type"] == kind && c["status"] == truth)
}

/// A pod of a set, not started yet.
pub(crate) fn made(set: &Live, id: &ObjectId, revision: &str) -> Value {
    let template = &set.value["spec"]["template"];
    let mut metadata = template["metadata"].clone();
    metadata["name"] = json!(id.name);
    metadata["namespace"] = json!(id.namespace);
    metadata["labels"][REVISION_LABEL] = json!(revision);
    metadata["labels"]["statefulset.kubernetes.io/pod-name"] = json!(id.name);
    metadata["ownerReferences"] = json!([{
        "apiVersion": set.value["apiVersion"], "kind": set.value["kind"],
        "name": set.metadata.name, "uid": set.uid(),
        "controller": true, "blockOwnerDeletion": true,
    }]);
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"],
        "status": {"phase": "Pending"},
    })
}

/// The pod once it is ready.
pub(crate) fn started(pod: &Live, now: Timestamp) -> Value {
    let mut value = pod.value.clone();
    let since = second(now);
    let container = |c: &Value| {
        json!({"name": c["name"], "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": since}}})
    };
    let containers: Vec<Value> =
        value["spec"]["containers"].as_array().into_iter().flatten().map(container).collect();
    let conditions: Vec<Value> = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": since}))
        .to_vec();
    value["status"] = json!({
        "phase": "Running", "conditions": conditions, "containerStatuses": containers,
        "startTime": since,
    });
    value
}

/// A claim made from a set's template, bound.
pub(crate) fn claim(template: &Value, id: &ObjectId) -> Value {
    let mut metadata = template["metadata"].clone();
    metadata["name"] = json!(id.name);
    metadata["namespace"] = json!(id.namespace);
    let capacity = &template["spec"]["resources"]["requests"];
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": metadata, "spec": template["spec"],
        "status": {"phase": "Bound", "capacity": capacity},
    })
}
