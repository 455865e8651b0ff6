//! Containers: names, ports, environment, mounts, resources, probes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::report::{Node, Report};
use super::{pod, text};
use crate::quantity::Quantity;

/// Fields of its own that a pod can hand to its containers.
const OWN_FIELDS: [&str; 13] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "metadata.labels",
    "metadata.annotations",
    "spec.restartPolicy",
    "status.phase",
];

/// All containers of a pod spec; `volumes` are the names that can be mounted.
pub(super) fn check_all(spec: &Node<'_>, volumes: &[String], report: &mut Report) {
    let containers = spec.field("containers");
    if containers.is_empty() {
        report.required(&containers.path, "");
    }
    let mut names = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        for container in spec.field(list).items() {
            name(&container, &mut names, report);
            one(&container, volumes, report);
            if list == "containers" {
                taken_ports(&container, &mut host_ports, report);
            }
        }
    }
}

fn name<'a>(container: &Node<'a>, names: &mut BTreeSet<&'a str>, report: &mut Report) {
    let name = container.field("name");
    if name.is_empty() {
        report.required(&name.path, "");
    } else {
        report.text(&name, text::label(name.text()));
    }
    if !names.insert(name.text()) {
        report.duplicate(&name.path, &json!(name.text()).to_string());
    }
}

fn one(container: &Node<'_>, volumes: &[String], report: &mut Report) {
    let image = container.field("image");
    if image.is_empty() {
        report.required(&image.path, "");
    } else if image.text().trim() != image.text() {
        report.invalid(&image, "must not have leading or trailing whitespace");
    }
    ports(&container.field("ports"), report);
    environment(container, report);
    mounts(&container.field("volumeMounts"), volumes, report);
    report.one_of(&container.field("imagePullPolicy"), &["Always", "IfNotPresent", "Never"]);
    report.one_of(&container.field("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"]);
    resources(&container.field("resources"), report);
    let context = container.field("securityContext");
    pod::user_numbers(&context, &["runAsUser", "runAsGroup"], report);
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container.field("lifecycle").some(hook) {
            handler(&hook, report);
        }
    }
    for (probe, once) in
        [("livenessProbe", true), ("readinessProbe", false), ("startupProbe", true)]
    {
        if let Some(probe) = container.some(probe) {
            self::probe(&probe, once, report);
        }
    }
}

/// A port number.
pub(super) fn port_number(node: &Node<'_>, report: &mut Report) {
    if node.number().is_none_or(|number| !(1..=65535).contains(&number)) {
        report.invalid(node, "must be between 1 and 65535, inclusive");
    }
}

/// A port number or the name of a port.
pub(super) fn port_reference(node: &Node<'_>, report: &mut Report) {
    match node.value {
        Value::String(name) => report.text(node, text::port_name(name)),
        _ => port_number(node, report),
    }
}

fn ports(ports: &Node<'_>, report: &mut Report) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if !name.is_empty() {
            let complaints = text::port_name(name.text());
            if complaints.is_empty() && !names.insert(name.text()) {
                report.duplicate(&name.path, &name.value.to_string());
            }
            report.text(&name, complaints);
        }
        let number = port.field("containerPort");
        if number.number().unwrap_or(0) == 0 {
            report.required(&number.path, "");
        } else {
            port_number(&number, report);
        }
        let host = port.field("hostPort");
        if host.number().is_some_and(|number| number != 0) {
            port_number(&host, report);
        }
        report.one_of(&port.field("protocol"), &["SCTP", "TCP", "UDP"]);
    }
}

fn taken_ports(container: &Node<'_>, taken: &mut BTreeSet<String>, report: &mut Report) {
    for port in container.field("ports").items() {
        let host = port.field("hostPort");
        let Some(number) = host.number().filter(|number| *number != 0) else { continue };
        let shown =
            format!("{}/{}/{number}", port.field("protocol").text(), port.field("hostIP").text());
        if !taken.insert(shown.clone()) {
            report.duplicate(&host.path, &json!(shown).to_string());
        }
    }
}

fn environment(container: &Node<'_>, report: &mut Report) {
    for variable in container.field("env").items() {
        let name = variable.field("name");
        if name.is_empty() {
            report.required(&name.path, "");
        } else {
            report.text(&name, text::variable(name.text()));
        }
        if let Some(source) = variable.some("valueFrom") {
            value_source(&variable, &source, report);
        }
    }
    let from = container.field("envFrom");
    for source in from.items() {
        if source.field("configMapRef").value.is_null() && source.field("secretRef").value.is_null()
        {
            let detail = "must specify one of: `configMapRef` or `secretRef`";
            report.invalid_as(&from.path, &json!(""), detail);
        }
    }
}

fn value_source(variable: &Node<'_>, source: &Node<'_>, report: &mut Report) {
    let kinds = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let count = kinds.iter().filter(|kind| !source.field(kind).value.is_null()).count();
    if let Some(field) = source.some("fieldRef") {
        let path = field.field("fieldPath");
        let name = path.text();
        let keyed = ["metadata.labels['", "metadata.annotations['"];
        if path.is_empty() {
            report.required(&path.path, "");
        } else if !OWN_FIELDS.contains(&name) && !keyed.iter().any(|start| name.starts_with(start))
        {
            let detail = format!("error converting fieldPath: field label not supported: {name}");
            report.invalid(&path, &detail);
        }
    }
    if let Some(reference) = source.some("resourceFieldRef") {
        let resource = reference.field("resource");
        if resource.is_empty() {
            report.required(&resource.path, "");
        }
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = source.some(kind) {
            let key = reference.field("key");
            if key.is_empty() {
                report.required(&key.path, "");
            } else {
                report.text(&key, text::config_key(key.text()));
            }
        }
    }
    let at = &source.path;
    match count {
        0 => report.invalid_as(
            at,
            &json!(""),
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        _ if !variable.field("value").is_empty() => {
            report.invalid_as(at, &json!(""), "may not be specified when `value` is not empty");
        }
        1 => {}
        _ => report.invalid_as(at, &json!(""), "may not have more than one field specified at a time"),
    }
}

fn mounts(mounts: &Node<'_>, volumes: &[String], report: &mut Report) {
    let mut paths = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        if name.is_empty() {
            report.required(&name.path, "");
        }
        if !volumes.iter().any(|volume| volume == name.text()) {
            report.not_found(&name);
        }
        if path.is_empty() {
            report.required(&path.path, "");
        } else if !paths.insert(path.text()) {
            report.invalid(&path, "must be unique");
        }
        for field in ["subPath", "subPathExpr"] {
            let inner = mount.field(field);
            if let Some(complaint) = text::inner_path(inner.text()) {
                report.invalid_as(&format!("{}.{field}", mounts.path), inner.value, complaint);
            }
        }
    }
}

fn resources(resources: &Node<'_>, report: &mut Report) {
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    for list in [&limits, &requests] {
        for (name, value) in list.entries() {
            resource(&list.key(name), name, value, report);
        }
    }
    for (name, request) in requests.entries() {
        let whole = name.contains('/') || name.starts_with("hugepages-");
        let Some(limit) = limits.value.get(name) else {
            if whole {
                let detail = "Limit must be set for non overcommitable resources";
                report.required(&limits.path, detail);
            }
            continue;
        };
        let parsed = |value: &Value| Quantity::parse(value.as_str().unwrap_or_default()).ok();
        let (Some(wanted), Some(most)) = (parsed(request), parsed(limit)) else { continue };
        if whole && wanted != most {
            let detail = format!("must be equal to {name} limit of {most}");
            report.invalid_as(&requests.path, request, &detail);
        } else if wanted > most {
            let detail = format!("must be less than or equal to {name} limit of {most}");
            report.invalid_as(&requests.path, request, &detail);
        }
    }
}

fn resource(node: &Node<'_>, name: &str, value: &Value, report: &mut Report) {
    let standard =
        matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    let complaints = text::qualified(name);
    let well_formed = complaints.is_empty();
    for complaint in complaints {
        report.invalid_as(&node.path, &json!(name), &complaint);
    }
    if well_formed && !name.contains('/') && !standard {
        let detail = "must be a standard resource type or fully qualified";
        report.invalid_as(&node.path, &json!(name), detail);
    }
    if !name.contains('/') && !standard {
        report.invalid_as(&node.path, &json!(name), "must be a standard resource for containers");
    }
    let Ok(amount) = Quantity::parse(value.as_str().unwrap_or_default()) else { return };
    if amount.is_negative() {
        report.invalid(node, "must be greater than or equal to 0");
    }
    let whole = amount.scaled(0).is_some_and(|units| {
        Quantity::parse(&units.to_string()).is_ok_and(|units| units == amount)
    });
    if name.contains('/') && !whole {
        report.invalid(node, "must be an integer");
    }
}

fn handler(node: &Node<'_>, report: &mut Report) {
    let mut found = false;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(handler) = node.some(kind) else { continue };
        if found {
            report.forbidden(&handler.path, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match kind {
            "exec" => {
                let command = handler.field("command");
                if command.is_empty() {
                    report.required(&command.path, "");
                }
            }
            "httpGet" => {
                let path = handler.field("path");
                if path.is_empty() {
                    report.required(&path.path, "");
                }
                port_reference(&handler.field("port"), report);
                report.one_of(&handler.field("scheme"), &["HTTP", "HTTPS"]);
            }
            "tcpSocket" => port_reference(&handler.field("port"), report),
            "grpc" => port_number(&handler.field("port"), report),
            _ => {}
        }
    }
    if !found {
        report.required(&node.path, "must specify a handler type");
    }
}

fn probe(probe: &Node<'_>, once: bool, report: &mut Report) {
    handler(probe, report);
    for field in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        report.not_negative(&probe.field(field));
    }
    let successes = probe.field("successThreshold");
    if once && successes.number().is_some_and(|count| count != 1) {
        report.invalid(&successes, "must be 1");
    }
}
