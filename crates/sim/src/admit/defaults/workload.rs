//! Defaults of the kinds that run pods.

use serde_json::{Value, json};

use super::{each, inner, pod, put, storage};

/// The server shows an internal counter of DaemonSets as this annotation.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Deployment.
pub(super) fn deployment(object: &mut Value) {
    let spec = inner(object, "spec");
    put(spec, "replicas", json!(1));
    put(spec, "revisionHistoryLimit", json!(10));
    put(spec, "progressDeadlineSeconds", json!(600));
    let strategy = inner(spec, "strategy");
    put(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        let rolling = inner(strategy, "rollingUpdate");
        put(rolling, "maxUnavailable", json!("25%"));
        put(rolling, "maxSurge", json!("25%"));
    }
    pod::template(inner(spec, "template"));
}

/// StatefulSet.
pub(super) fn stateful_set(object: &mut Value) {
    let spec = inner(object, "spec");
    put(spec, "podManagementPolicy", json!("OrderedReady"));
    put(spec, "replicas", json!(1));
    put(spec, "revisionHistoryLimit", json!(10));
    let strategy = inner(spec, "updateStrategy");
    if super::unset(strategy.get("type")) {
        strategy["type"] = json!("RollingUpdate");
        inner(strategy, "rollingUpdate");
    }
    if strategy["type"] == "RollingUpdate" && strategy["rollingUpdate"].is_object() {
        put(inner(strategy, "rollingUpdate"), "partition", json!(0));
    }
    let retention = inner(spec, "persistentVolumeClaimRetentionPolicy");
    put(retention, "whenDeleted", json!("Retain"));
    put(retention, "whenScaled", json!("Retain"));
    for claim in each(spec, "volumeClaimTemplates") {
        put(claim, "apiVersion", json!("v1"));
        put(claim, "kind", json!("PersistentVolumeClaim"));
        storage::claim(claim);
    }
    pod::template(inner(spec, "template"));
}

/// DaemonSet.
pub(super) fn daemon_set(object: &mut Value) {
    put(inner(inner(object, "metadata"), "annotations"), TEMPLATE_GENERATION, json!("1"));
    let spec = inner(object, "spec");
    put(spec, "revisionHistoryLimit", json!(10));
    let strategy = inner(spec, "updateStrategy");
    put(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        let rolling = inner(strategy, "rollingUpdate");
        put(rolling, "maxUnavailable", json!(1));
        put(rolling, "maxSurge", json!(0));
    }
    pod::template(inner(spec, "template"));
}

/// ReplicaSet.
pub(super) fn replica_set(object: &mut Value) {
    let spec = inner(object, "spec");
    put(spec, "replicas", json!(1));
    pod::template(inner(spec, "template"));
}

/// ReplicationController.
pub(super) fn replication_controller(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        put(inner(object, "spec"), "selector", labels.clone());
        put(inner(object, "metadata"), "labels", labels);
    }
    replica_set(object);
}
