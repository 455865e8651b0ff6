//! Services, EndpointSlices and network policies.

use serde_json::{Value, json};

use super::{Printer, age_of, each, name, number, selector, text, text_or};

pub(super) const SERVICES: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Type", "string", 0),
        ("Cluster-IP", "string", 0),
        ("External-IP", "string", 0),
        ("Port(s)", "string", 0),
        ("Age", "string", 0),
        ("Selector", "string", 1),
    ],
    cells: |service, now| {
        vec![
            name(service),
            json!(text(service, "/spec/type")),
            json!(text_or(service, "/spec/clusterIP", "<none>")),
            json!(external(service)),
            json!(ports(service)),
            age_of(service, now),
            json!(selector(service.pointer("/spec/selector"))),
        ]
    },
};

fn external(service: &Value) -> String {
    let listed: Vec<&str> = each(service, "/spec/externalIPs").filter_map(Value::as_str).collect();
    match text(service, "/spec/type") {
        "ExternalName" => text(service, "/spec/externalName").to_owned(),
        "LoadBalancer" => {
            let points: Vec<&str> = each(service, "/status/loadBalancer/ingress")
                .map(|point| text_or(point, "/ip", text(point, "/hostname")))
                .chain(listed)
                .collect();
            if points.is_empty() { "<pending>".to_owned() } else { points.join(",") }
        }
        _ if listed.is_empty() => "<none>".to_owned(),
        _ => listed.join(","),
    }
}

fn ports(service: &Value) -> String {
    let ports: Vec<String> = each(service, "/spec/ports")
        .map(|port| {
            let protocol = text_or(port, "/protocol", "TCP");
            match (number(port, "/port"), number(port, "/nodePort")) {
                (port, 0) => format!("{port}/{protocol}"),
                (port, node) => format!("{port}:{node}/{protocol}"),
            }
        })
        .collect();
    if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }
}

pub(super) const SLICES: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("AddressType", "string", 0),
        ("Ports", "string", 0),
        ("Endpoints", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |slice, now| {
        let ports: Vec<String> =
            each(slice, "/ports").map(|port| number(port, "/port").to_string()).collect();
        let addresses: Vec<&str> = each(slice, "/endpoints")
            .flat_map(|endpoint| each(endpoint, "/addresses").filter_map(Value::as_str))
            .collect();
        vec![
            name(slice),
            json!(text(slice, "/addressType")),
            json!(few(&ports)),
            json!(few(&addresses)),
            age_of(slice, now),
        ]
    },
};

/// At most three, then how many more.
fn few<T: AsRef<str>>(texts: &[T]) -> String {
    let shown: Vec<&str> = texts.iter().take(3).map(AsRef::as_ref).collect();
    match texts.len() {
        0 => "<unset>".to_owned(),
        count if count > 3 => format!("{} + {} more...", shown.join(","), count - 3),
        _ => shown.join(","),
    }
}

pub(super) const POLICIES: Printer = Printer {
    headings: &[("Name", "string", 0), ("Pod-Selector", "string", 0), ("Age", "string", 0)],
    cells: |policy, now| {
        vec![
            name(policy),
            json!(selector(policy.pointer("/spec/podSelector"))),
            age_of(policy, now),
        ]
    },
};
