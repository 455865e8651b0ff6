//! What kube-apiserver 1.36 fills in for absent fields of built-in kinds.
//!
//! Only constants that depend on the object itself. Addresses, quotas and anything else that needs
//! the store is done by the admission hooks.

use serde_json::{Map as Object, Value, json};

use crate::kind::Kind;

mod extension;
mod pod;
mod service;
mod storage;
mod workload;

/// See [`super::default`].
pub(super) fn fill(kind: &Kind, object: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod::pod(object),
        ("", "PodTemplate") => pod::template(&mut object["template"]),
        ("", "ReplicationController") => workload::replication_controller(object),
        ("apps", "Deployment") => workload::deployment(object),
        ("apps", "StatefulSet") => workload::stateful_set(object),
        ("apps", "DaemonSet") => workload::daemon_set(object),
        ("apps", "ReplicaSet") => workload::replica_set(object),
        ("", "Service") => service::service(object),
        ("", "Endpoints") => service::endpoints(object),
        ("discovery.k8s.io", "EndpointSlice") => service::endpoint_slice(object),
        ("networking.k8s.io", "NetworkPolicy") => service::network_policy(object),
        ("", "PersistentVolumeClaim") => storage::claim(object),
        ("", "PersistentVolume") => storage::volume(object),
        ("storage.k8s.io", "StorageClass") => storage::class(object),
        ("storage.k8s.io", "CSIDriver") => storage::driver(object),
        ("", "Node") => service::node(object),
        ("", "Secret") => put(object, "type", json!("Opaque")),
        ("", "LimitRange") => extension::limit_range(object),
        ("scheduling.k8s.io", "PriorityClass") => {
            put(object, "preemptionPolicy", json!("PreemptLowerPriority"));
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            extension::binding(object);
        }
        ("admissionregistration.k8s.io", name) => extension::webhooks(object, name),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => extension::definition(object),
        _ => {}
    }
}

/// See [`super::plugins`].
pub(super) fn plugins(kind: &Kind, object: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod::plugins(object),
        ("", "Service") => service::addresses(object),
        _ => {}
    }
}

/// Whether a field counts as not set: absent, null, or empty text.
fn unset(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    }
}

/// Sets a field that is not set.
fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(map) = object.as_object_mut()
        && unset(map.get(field))
    {
        map.insert(field.to_owned(), value);
    }
}

/// Sets a number that is absent, null or zero.
fn put_number(object: &mut Value, field: &str, value: i64) {
    if object.get(field).is_none_or(|found| found.is_null() || *found == 0) {
        object[field] = json!(value);
    }
}

/// The struct under `field`, made if it is not there.
fn inner<'a>(object: &'a mut Value, field: &str) -> &'a mut Value {
    if !object[field].is_object() {
        object[field] = Value::Object(Object::new());
    }
    &mut object[field]
}

/// The items of the list under `field`; none if there is no list.
fn each<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

/// The struct under `field` if it is there.
fn present<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    object.get_mut(field).filter(|value| value.is_object())
}
