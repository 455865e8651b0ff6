//! Defaults of pods and pod templates.

use serde_json::{Value, json};

use super::{each, inner, present, put, put_number, unset};

/// The mode of files from Secrets, ConfigMaps and the like: 0644.
const FILE_MODE: i64 = 0o644;

/// A pod: what a template gets, and what only a pod gets.
pub(super) fn pod(object: &mut Value) {
    let spec = inner(object, "spec");
    let host_network = spec["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            requests_from_limits(container);
            if host_network {
                host_ports(container);
            }
        }
    }
    put(spec, "enableServiceLinks", json!(true));
    pod_spec(spec);
}

/// A pod template.
pub(super) fn template(template: &mut Value) {
    pod_spec(inner(template, "spec"));
}

fn pod_spec(spec: &mut Value) {
    put(spec, "dnsPolicy", json!("ClusterFirst"));
    put(spec, "restartPolicy", json!("Always"));
    put(spec, "schedulerName", json!("default-scheduler"));
    put(spec, "terminationGracePeriodSeconds", json!(30));
    put(spec, "securityContext", json!({}));
    account_names(spec);
    for volume in each(spec, "volumes") {
        self::volume(volume);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in each(spec, list) {
            self::container(container);
        }
    }
}

/// The server keeps the deprecated name of the field beside the present one.
fn account_names(spec: &mut Value) {
    if unset(spec.get("serviceAccountName")) && !unset(spec.get("serviceAccount")) {
        spec["serviceAccountName"] = spec["serviceAccount"].clone();
    }
    if !unset(spec.get("serviceAccountName")) {
        spec["serviceAccount"] = spec["serviceAccountName"].clone();
    }
}

/// What the server's own admission plugins add to a pod: account, priority, tolerations.
pub(super) fn plugins(object: &mut Value) {
    let spec = inner(object, "spec");
    put(spec, "serviceAccountName", json!("default"));
    account_names(spec);
    if unset(spec.get("priorityClassName")) {
        put(spec, "priority", json!(0));
        put(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
        let tolerated = tolerations.iter().any(|toleration| {
            let any_key = unset(toleration.get("key"));
            (any_key || toleration["key"] == key)
                && (unset(toleration.get("effect")) || toleration["effect"] == "NoExecute")
        });
        if !tolerated {
            let added = json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300});
            let all: Vec<Value> = tolerations.into_iter().chain([added]).collect();
            spec["tolerations"] = Value::Array(all);
        }
    }
}

fn requests_from_limits(container: &mut Value) {
    let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
    for (name, limit) in limits {
        put(inner(inner(container, "resources"), "requests"), &name, limit);
    }
}

fn host_ports(container: &mut Value) {
    for port in each(container, "ports") {
        if let Some(number) = port["containerPort"].as_i64() {
            put_number(port, "hostPort", number);
        }
    }
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let policy = if floating(image) { "Always" } else { "IfNotPresent" };
    put(container, "imagePullPolicy", json!(policy));
    put(container, "terminationMessagePath", json!("/dev/termination-log"));
    put(container, "terminationMessagePolicy", json!("File"));
    for port in each(container, "ports") {
        put(port, "protocol", json!("TCP"));
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = present(container, probe) {
            self::probe(probe);
        }
    }
    if let Some(lifecycle) = present(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(get) = present(lifecycle, hook).and_then(|hook| present(hook, "httpGet")) {
                http_get(get);
            }
        }
    }
    for variable in each(container, "env") {
        if let Some(source) =
            present(variable, "valueFrom").and_then(|from| present(from, "fieldRef"))
        {
            put(source, "apiVersion", json!("v1"));
        }
    }
}

/// Whether an image name has no tag, or the tag that moves.
fn floating(image: &str) -> bool {
    // What is no image name at all has no tag that could move.
    if image.contains('@') || !image.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return image.is_empty();
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn probe(probe: &mut Value) {
    put_number(probe, "timeoutSeconds", 1);
    put_number(probe, "periodSeconds", 10);
    put_number(probe, "successThreshold", 1);
    put_number(probe, "failureThreshold", 3);
    if let Some(get) = present(probe, "httpGet") {
        http_get(get);
    }
    if let Some(call) = present(probe, "grpc")
        && call["service"].is_null()
    {
        call["service"] = json!("");
    }
}

fn http_get(get: &mut Value) {
    put(get, "path", json!("/"));
    put(get, "scheme", json!("HTTP"));
}

/// Also used for the templates of claims inside volumes.
fn volume(volume: &mut Value) {
    let sourceless = volume
        .as_object()
        .is_some_and(|map| !map.iter().any(|(key, value)| key != "name" && !value.is_null()));
    if sourceless {
        volume["emptyDir"] = json!({});
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = present(volume, source) {
            put(source, "defaultMode", json!(FILE_MODE));
        }
    }
    if let Some(path) = present(volume, "hostPath")
        && path["type"].is_null()
    {
        path["type"] = json!("");
    }
    if let Some(items) = present(volume, "downwardAPI") {
        field_references(items);
    }
    if let Some(projected) = present(volume, "projected") {
        for source in each(projected, "sources") {
            if let Some(token) = present(source, "serviceAccountToken") {
                put(token, "expirationSeconds", json!(3600));
            }
            if let Some(items) = present(source, "downwardAPI") {
                field_references(items);
            }
        }
    }
    if let Some(template) =
        present(volume, "ephemeral").and_then(|own| present(own, "volumeClaimTemplate"))
    {
        put(inner(template, "spec"), "volumeMode", json!("Filesystem"));
    }
}

fn field_references(source: &mut Value) {
    for item in each(source, "items") {
        if let Some(reference) = present(item, "fieldRef") {
            put(reference, "apiVersion", json!("v1"));
        }
    }
}
