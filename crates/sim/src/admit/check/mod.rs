//! Validation of built-in kinds.
//!
//! The rules that operators meet, in kube-apiserver's order and words; not every rule there is.

use serde_json::Value;

use crate::kind::Kind;
use crate::status::Cause;

mod container;
mod data;
mod definition;
mod metadata;
mod placement;
mod pod;
mod policy;
mod report;
mod selector;
mod service;
mod storage;
mod text;
mod volume;
mod workload;

use report::{Node, Report};

/// See [`super::validate`].
pub(super) fn check(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut report = Report::default();
    let node = Node::root(object);
    if !is_generated(kind) {
        metadata::check(kind, &node, old.is_some(), &mut report);
    }
    if !kind.custom {
        by_kind(kind, &node, old, &mut report);
    }
    report.causes
}

/// Events have looser metadata.
fn is_generated(kind: &Kind) -> bool {
    kind.kind == "Event" && !kind.custom
}

fn by_kind(kind: &Kind, object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "ConfigMap") => data::config_map(object, old, report),
        ("", "Secret") => data::secret(object, old, report),
        ("", "Pod") => pod::pod(object, old, report),
        ("apps", "StatefulSet") => workload::stateful_set(object, old, report),
        ("apps", "Deployment") => workload::deployment(object, old, report),
        ("apps", "DaemonSet") => workload::daemon_set(object, old, report),
        ("apps", "ReplicaSet") => workload::replica_set(object, old, report),
        ("", "Service") => service::service(object, old, report),
        ("discovery.k8s.io", "EndpointSlice") => service::endpoint_slice(object, old, report),
        ("", "PersistentVolumeClaim") => storage::claim(object, old, report),
        ("", "PersistentVolume") => storage::volume(object, report),
        ("storage.k8s.io", "StorageClass") => storage::class(object, old, report),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            definition::definition(object, old, report);
        }
        ("policy", "PodDisruptionBudget") => policy::budget(object, report),
        ("rbac.authorization.k8s.io", "Role") => policy::role(object, true, report),
        ("rbac.authorization.k8s.io", "ClusterRole") => policy::role(object, false, report),
        ("rbac.authorization.k8s.io", "RoleBinding") => policy::binding(object, true, old, report),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => {
            policy::binding(object, false, old, report);
        }
        ("coordination.k8s.io", "Lease") => policy::lease(object, report),
        ("", "ResourceQuota") => policy::quota(object, report),
        ("", "LimitRange") => policy::limits(object, report),
        ("", "Event") => policy::event(object, report),
        ("scheduling.k8s.io", "PriorityClass") => policy::priority(object, old, report),
        _ => {}
    }
}
