//! Defaults of everything with a network address: Services, endpoints, Nodes, policies.

use serde_json::{Value, json};

use super::{each, inner, put, unset};

/// Service. The address itself is assigned by admission.
pub(super) fn service(object: &mut Value) {
    let spec = inner(object, "spec");
    put(spec, "sessionAffinity", json!("None"));
    if spec["sessionAffinity"] == "ClientIP" {
        let client = inner(inner(spec, "sessionAffinityConfig"), "clientIP");
        put(client, "timeoutSeconds", json!(10800));
    } else if spec["sessionAffinity"] == "None"
        && let Some(map) = spec.as_object_mut()
    {
        map.remove("sessionAffinityConfig");
    }
    put(spec, "type", json!("ClusterIP"));
    balancer(object);
    let spec = inner(object, "spec");
    for port in each(spec, "ports") {
        put(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        if port["targetPort"] == 0 || unset(port.get("targetPort")) {
            port["targetPort"] = number;
        }
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        put(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        put(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        put(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
}

/// An address that a load balancer reports.
fn balancer(object: &mut Value) {
    let Some(Value::Array(addresses)) = object.pointer_mut("/status/loadBalancer/ingress") else {
        return;
    };
    for address in addresses.iter_mut().filter(|address| !unset(address.get("ip"))) {
        put(address, "ipMode", json!("VIP"));
    }
}

/// Address families of a cluster with IPv4 only, and the two spellings of the address. The server
/// fills them in after it has recorded who owns what.
pub(super) fn addresses(object: &mut Value) {
    let spec = inner(object, "spec");
    if spec["type"] == "ExternalName" {
        return;
    }
    let headless = spec["clusterIP"] == "None" || spec["clusterIPs"][0] == "None";
    let selects = spec["selector"].as_object().is_some_and(|selector| !selector.is_empty());
    let dual = headless && !selects && unset(spec.get("ipFamilyPolicy"));
    if dual {
        put(spec, "ipFamilyPolicy", json!("RequireDualStack"));
        put(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
    } else {
        put(spec, "ipFamilyPolicy", json!("SingleStack"));
        put(spec, "ipFamilies", json!(["IPv4"]));
    }
    let first = spec["clusterIPs"][0].clone();
    if !unset(Some(&first)) {
        put(spec, "clusterIP", first);
    }
    let address = spec["clusterIP"].clone();
    if !unset(Some(&address)) {
        put(spec, "clusterIPs", json!([address]));
    }
}

/// Endpoints.
pub(super) fn endpoints(object: &mut Value) {
    for subset in each(object, "subsets") {
        for port in each(subset, "ports") {
            put(port, "protocol", json!("TCP"));
        }
    }
}

/// EndpointSlice.
pub(super) fn endpoint_slice(object: &mut Value) {
    for port in each(object, "ports") {
        if port["name"].is_null() {
            port["name"] = json!("");
        }
        put(port, "protocol", json!("TCP"));
    }
}

/// Node: its range of pod addresses in both spellings.
pub(super) fn node(object: &mut Value) {
    let range = object["spec"]["podCIDR"].clone();
    if !unset(Some(&range)) {
        put(inner(object, "spec"), "podCIDRs", json!([range]));
    }
}

/// NetworkPolicy.
pub(super) fn network_policy(object: &mut Value) {
    let spec = inner(object, "spec");
    for rules in ["ingress", "egress"] {
        for rule in each(spec, rules) {
            for port in each(rule, "ports") {
                put(port, "protocol", json!("TCP"));
            }
        }
    }
    if unset(spec.get("policyTypes")) {
        let egress = spec["egress"].as_array().is_some_and(|rules| !rules.is_empty());
        spec["policyTypes"] =
            if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    }
}
