//! Services and EndpointSlices.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::container::{port_number, port_reference};
use super::report::{Node, Report};
use super::{metadata, text};

/// A day in seconds: the longest that a client can stick to an endpoint.
const DAY: i64 = 86400;

/// Service.
pub(super) fn service(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    let spec = object.field("spec");
    if let Some(old) = old {
        addresses(&old["spec"], &spec, report);
    }
    // An address that is none fails before anything else is looked at.
    let address = spec.field("clusterIP");
    if !address.is_empty() && address.text() != "None" && address.text().parse::<IpAddr>().is_err()
    {
        return report.invalid_as("spec.clusterIPs[0]", address.value, text::NO_ADDRESS);
    }
    let kind = spec.field("type");
    let headless = spec.value["clusterIP"] == "None";
    let ports = spec.field("ports");
    if ports.is_empty() && !headless && kind.text() != "ExternalName" {
        report.required(&ports.path, "");
    }
    external_name(&spec, report);
    self::ports(&spec, report);
    metadata::labels(&spec.field("selector"), report);
    affinity(&spec, report);
    report.one_of(&kind, &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    report.one_of_if_set(&spec.field("internalTrafficPolicy"), &["Cluster", "Local"]);
    report.one_of_if_set(&spec.field("externalTrafficPolicy"), &["Cluster", "Local"]);
    for address in spec.field("externalIPs").items() {
        if address.text().parse::<IpAddr>().is_err() {
            report.invalid(&address, text::NO_ADDRESS);
        }
    }
    if headless && matches!(kind.text(), "NodePort" | "LoadBalancer") {
        let detail = format!("may not be set to 'None' for {} services", kind.text());
        report.invalid_as("spec.clusterIPs[0]", &json!("None"), &detail);
    }
}

fn external_name(spec: &Node<'_>, report: &mut Report) {
    if spec.field("type").text() != "ExternalName" {
        return;
    }
    let name = spec.field("externalName");
    if name.is_empty() {
        report.required(&name.path, "");
    } else {
        report.text(&name, text::subdomain(name.text().trim_end_matches('.')));
    }
}

fn ports(spec: &Node<'_>, report: &mut Report) {
    let ports = spec.field("ports");
    let several = ports.items().count() > 1;
    let inner = spec.field("type").text() == "ClusterIP";
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if name.is_empty() {
            if several {
                report.required(&name.path, "");
            }
        } else {
            report.text(&name, text::label(name.text()));
            if !names.insert(name.text()) {
                report.duplicate(&name.path, &name.value.to_string());
            }
        }
        port_number(&port.field("port"), report);
        report.one_of(&port.field("protocol"), &["SCTP", "TCP", "UDP"]);
        port_reference(&port.field("targetPort"), report);
        let node_port = port.field("nodePort");
        if inner && node_port.number().unwrap_or(0) != 0 {
            report.forbidden(&node_port.path, "may not be used when `type` is 'ClusterIP'");
        }
    }
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let (number, protocol) = (port.value["port"].to_string(), port.field("protocol").text());
        if !seen.insert((number.clone(), protocol)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}",
                json!(protocol)
            );
            report.duplicate(&port.path, &shown);
        }
    }
}

fn affinity(spec: &Node<'_>, report: &mut Report) {
    report.one_of(&spec.field("sessionAffinity"), &["ClientIP", "None"]);
    let timeout = spec.at("sessionAffinityConfig.clientIP.timeoutSeconds");
    if timeout.number().is_some_and(|seconds| !(1..=DAY).contains(&seconds)) {
        report.invalid(&timeout, &format!("must be greater than 0 and less than {DAY}"));
    }
}

/// A Service keeps its address while it has one.
fn addresses(old: &Value, spec: &Node<'_>, report: &mut Report) {
    let moved = |spec: &Value| spec["type"] == "ExternalName";
    let (before, after) = (&old["clusterIPs"][0], &spec.value["clusterIPs"][0]);
    if moved(old) || moved(spec.value) || before.is_null() || before == after {
        return;
    }
    let all = spec.field("clusterIPs");
    report.invalid_as("spec.clusterIPs[0]", all.value, "may not change once set");
}

/// EndpointSlice.
pub(super) fn endpoint_slice(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    let kind = object.field("addressType");
    if kind.is_empty() {
        report.required(&kind.path, "");
    } else {
        report.one_of(&kind, &["FQDN", "IPv4", "IPv6"]);
    }
    let known = ["FQDN", "IPv4", "IPv6"].contains(&kind.text());
    for endpoint in object.field("endpoints").items().filter(|_| known) {
        let addresses = endpoint.field("addresses");
        if addresses.is_empty() {
            report.required(&addresses.path, "must contain at least 1 address");
        }
        for address in addresses.items().filter(|_| kind.text() != "FQDN") {
            if address.text().parse::<IpAddr>().is_err() {
                report.invalid(&address, text::NO_ADDRESS);
            }
        }
    }
    let mut names = BTreeSet::new();
    for port in object.field("ports").items() {
        let name = port.field("name");
        if !names.insert(name.text()) {
            report.duplicate(&name.path, &json!(name.text()).to_string());
        }
    }
    if old.is_some_and(|old| old["addressType"] != object.value["addressType"]) {
        report.invalid(&kind, "field is immutable");
    }
}
