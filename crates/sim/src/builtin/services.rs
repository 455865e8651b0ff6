//! EndpointSlices: who answers behind a Service, and whether it is ready.
//!
//! Must not allocate cluster addresses; `admission` does when a Service is written.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::door::{Door, PODS, SERVICES, SLICES};
use super::{Controller, Model, field};
use crate::Core;

const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// When the change happened that a slice shows.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const MANAGER: &str = "endpointslice-controller.k8s.io";

/// The EndpointSlice controller; it holds no state of its own.
#[derive(Default)]
pub(super) struct Endpoints;

impl Controller for Endpoints {
    fn watches(&self) -> &'static [&'static str] {
        &["services", "pods", "endpointslices"]
    }

    fn sync(&mut self, core: &mut Core, model: &mut Model) -> Option<Timestamp> {
        let mut door =
            Door::controller(core, "endpointslice-controller", "endpoint-slice-controller");
        for service in door.list(SERVICES, None) {
            let selector = field::map(&service, "/spec/selector");
            let external = field::text(&service, "/spec/type") == "ExternalName";
            if !selector.is_empty() && !external && !field::deleting(&service) {
                one(&mut door, model, &service);
            }
        }
        None
    }
}

fn one(door: &mut Door, model: &mut Model, service: &Value) {
    let selector = json!({ "matchLabels": service["spec"]["selector"] });
    let namespace = field::namespace(service).to_owned();
    let always = field::flag(service, "/spec/publishNotReadyAddresses");
    let mut groups: BTreeMap<String, (Value, Vec<Value>)> = BTreeMap::new();
    for pod in door.shared(PODS, Some(&namespace)) {
        let ended = matches!(field::text(&pod, "/status/phase"), "Succeeded" | "Failed");
        let placed = !field::text(&pod, "/status/podIP").is_empty();
        if placed && !ended && field::selects(&selector, &field::labels(&pod)) {
            let ports = ports(service, &pod);
            let group = groups.entry(ports.to_string()).or_insert_with(|| (ports, Vec::new()));
            group.1.push(endpoint(service, &pod, always));
        }
    }
    if groups.is_empty() {
        // The real controller keeps one empty slice per Service.
        groups.insert(String::new(), (Value::Null, Vec::new()));
    }
    let mut existing = door.list(SLICES, Some(&namespace));
    existing.retain(|slice| {
        field::strings(slice, "/metadata/labels")
            .get("kubernetes.io/service-name")
            .map(String::as_str)
            == Some(field::name(service))
            && field::strings(slice, "/metadata/labels").get(MANAGED_BY).map(String::as_str)
                == Some(MANAGER)
    });
    for (ports, endpoints) in groups.into_values() {
        let fitting = existing.iter().position(|slice| slice["ports"] == ports);
        let reused = fitting.or_else(|| (!existing.is_empty()).then_some(0));
        let before = reused.map(|index| existing.remove(index));
        write(door, model, service, before, ports, endpoints);
    }
    for surplus in existing {
        let _ = door.delete(SLICES, &surplus);
    }
}

fn write(
    door: &mut Door,
    model: &mut Model,
    service: &Value,
    before: Option<Value>,
    ports: Value,
    endpoints: Vec<Value>,
) {
    let labels = slice_labels(service);
    if let Some(mut slice) = before {
        let same = slice["ports"] == ports
            && field::list(&slice, "/endpoints") == endpoints
            && field::map(&slice, "/metadata/labels") == labels;
        if same {
            return;
        }
        slice["ports"] = ports;
        slice["endpoints"] = listed(endpoints);
        slice["metadata"]["labels"] = Value::Object(labels);
        slice["metadata"]["annotations"][TRIGGER] = json!(field::stamp(door.now()));
        let _ = door.update(SLICES, slice);
        return;
    }
    const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let number = model.number();
    let suffix: String = (0..5)
        .map(|index| char::from(SAFE[(number >> (index * 8) & 0xff) as usize % 27]))
        .collect();
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{}-{suffix}", field::name(service)),
            "generateName": format!("{}-", field::name(service)),
            "namespace": field::namespace(service),
            "labels": labels,
            "annotations": { TRIGGER: field::text(service, "/metadata/creationTimestamp") },
            "ownerReferences": [field::owner_reference(service, true)],
        },
        "addressType": "IPv4",
        "endpoints": listed(endpoints),
        "ports": ports,
    });
    let _ = door.create(SLICES, field::namespace(service), slice);
}

/// Go writes an empty list of endpoints as null.
fn listed(endpoints: Vec<Value>) -> Value {
    if endpoints.is_empty() { Value::Null } else { Value::Array(endpoints) }
}

fn slice_labels(service: &Value) -> Map<String, Value> {
    let mut labels = field::map(service, "/metadata/labels");
    labels.insert("kubernetes.io/service-name".into(), json!(field::name(service)));
    labels.insert(MANAGED_BY.into(), json!(MANAGER));
    if field::text(service, "/spec/clusterIP") == "None" {
        labels.insert("service.kubernetes.io/headless".into(), json!(""));
    } else {
        labels.remove("service.kubernetes.io/headless");
    }
    labels
}

/// The Service's ports as this pod serves them; a named target port the pod lacks is left out.
fn ports(service: &Value, pod: &Value) -> Value {
    let mut ports = Vec::new();
    for port in field::list(service, "/spec/ports") {
        let number = match port.get("targetPort") {
            Some(Value::String(name)) => named_port(pod, name),
            Some(target) => target.as_i64(),
            None => port["port"].as_i64(),
        };
        let Some(number) = number else { continue };
        let protocol = match field::text(port, "/protocol") {
            "" => "TCP",
            protocol => protocol,
        };
        let mut entry = json!({
            "name": field::text(port, "/name"),
            "port": number,
            "protocol": protocol,
        });
        if let Some(application) = port.get("appProtocol") {
            entry["appProtocol"] = application.clone();
        }
        ports.push(entry);
    }
    Value::Array(ports)
}

fn named_port(pod: &Value, name: &str) -> Option<i64> {
    let containers = field::list(pod, "/spec/containers").iter();
    let ports = containers.flat_map(|container| field::list(container, "/ports"));
    ports.filter(|port| port["name"] == name).find_map(|port| port["containerPort"].as_i64())
}

fn endpoint(service: &Value, pod: &Value, always: bool) -> Value {
    let serving = field::is_true(pod, "Ready");
    let terminating = field::deleting(pod);
    let mut endpoint = json!({
        "addresses": [field::text(pod, "/status/podIP")],
        "conditions": {
            "ready": always || (serving && !terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "nodeName": field::text(pod, "/spec/nodeName"),
        "targetRef": {
            "kind": "Pod",
            "name": field::name(pod),
            "namespace": field::namespace(pod),
            "uid": field::uid(pod),
        },
    });
    let host = field::text(pod, "/spec/hostname");
    if !host.is_empty() && field::text(pod, "/spec/subdomain") == field::name(service) {
        endpoint["hostname"] = json!(host);
    }
    endpoint
}
