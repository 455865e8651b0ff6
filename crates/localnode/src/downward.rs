//! The downward API: a pod's own fields and resources as text. Pure.

use crate::quantity;
use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The address of the node itself; it has none but the machine's loopback.
pub(crate) const NODE_ADDRESS: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// What a pod can ask about itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PodFacts<'a> {
    /// Namespace of the pod.
    pub(crate) namespace: &'a str,
    pod: &'a Pod,
    address: Option<Ipv4Addr>,
}

impl<'a> PodFacts<'a> {
    /// The facts of a pod with the address the node gave it.
    pub(crate) fn of(pod: &'a Pod, address: Option<Ipv4Addr>) -> Self {
        Self { namespace: pod.metadata.namespace.as_deref().unwrap_or_default(), pod, address }
    }
}

/// The value of a `fieldRef`, or why there is none.
pub(crate) fn field(path: &str, facts: &PodFacts<'_>) -> Result<String, String> {
    let metadata = &facts.pod.metadata;
    let spec = facts.pod.spec.as_ref();
    let own = |value: Option<&String>| Ok(value.cloned().unwrap_or_default());
    match path {
        "metadata.name" => own(metadata.name.as_ref()),
        "metadata.namespace" => own(metadata.namespace.as_ref()),
        "metadata.uid" => own(metadata.uid.as_ref()),
        "metadata.labels" => Ok(listing(metadata.labels.as_ref())),
        "metadata.annotations" => Ok(listing(metadata.annotations.as_ref())),
        "spec.nodeName" => own(spec.and_then(|spec| spec.node_name.as_ref())),
        "spec.serviceAccountName" => own(spec.and_then(|spec| spec.service_account_name.as_ref())),
        "status.podIP" | "status.podIPs" => {
            Ok(facts.address.map(|a| a.to_string()).unwrap_or_default())
        }
        "status.hostIP" | "status.hostIPs" => Ok(NODE_ADDRESS.to_string()),
        _ => entry(path, "metadata.labels", metadata.labels.as_ref())
            .or_else(|| entry(path, "metadata.annotations", metadata.annotations.as_ref()))
            .ok_or_else(|| format!("unsupported fieldPath: {path}")),
    }
}

/// `metadata.labels['key']`, empty when the key is absent.
fn entry(path: &str, map_path: &str, map: Option<&BTreeMap<String, String>>) -> Option<String> {
    let key = path.strip_prefix(map_path)?.strip_prefix("['")?.strip_suffix("']")?;
    Some(map.and_then(|map| map.get(key)).cloned().unwrap_or_default())
}

/// One `key="value"` a line, as a downward API file lists a map.
fn listing(map: Option<&BTreeMap<String, String>>) -> String {
    let lines: Vec<String> =
        map.into_iter().flatten().map(|(key, value)| format!("{key}={value:?}")).collect();
    lines.join("\n")
}

/// The value of a `resourceFieldRef`; a limit that is not set reads as the machine's own size.
pub(crate) fn resource(
    wanted: &ResourceFieldSelector,
    container: &Container,
) -> Result<String, String> {
    let (list, resource) = wanted
        .resource
        .split_once('.')
        .ok_or_else(|| format!("unsupported container resource: {}", wanted.resource))?;
    let resources = container.resources.as_ref();
    let found = match list {
        "limits" => resources.and_then(|r| r.limits.as_ref()),
        "requests" => resources.and_then(|r| r.requests.as_ref()),
        _ => return Err(format!("unsupported container resource: {}", wanted.resource)),
    }
    .and_then(|list| list.get(resource));
    let value = match (found, list) {
        (Some(quantity), _) => quantity.0.clone(),
        (None, "limits") => machine_size(resource),
        (None, _) => "0".to_owned(),
    };
    // An empty divisor is what typed clients write for one that is not set.
    let divisor = wanted.divisor.as_ref().map_or("1", |d| d.0.as_str());
    let divisor = if matches!(divisor, "" | "0") { "1" } else { divisor };
    quantity::divide(&value, divisor)
        .map(|number| number.to_string())
        .ok_or_else(|| format!("cannot divide {value} by {divisor}"))
}

fn machine_size(resource: &str) -> String {
    match resource {
        "cpu" => crate::machine::processors().to_string(),
        _ => crate::machine::memory_bytes().to_string(),
    }
}
