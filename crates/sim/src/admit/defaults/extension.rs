//! Defaults of bindings, limits, webhooks and definitions.

use serde_json::{Value, json};

use super::{each, inner, present, put};

const RBAC: &str = "rbac.authorization.k8s.io";

/// RoleBinding and ClusterRoleBinding.
pub(super) fn binding(object: &mut Value) {
    put(inner(object, "roleRef"), "apiGroup", json!(RBAC));
    for subject in each(object, "subjects") {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            put(subject, "apiGroup", json!(RBAC));
        }
    }
}

/// LimitRange: a container's default request follows its default limit, and that the maximum.
pub(super) fn limit_range(object: &mut Value) {
    for item in each(inner(object, "spec"), "limits") {
        if item["type"] != "Container" {
            continue;
        }
        for (from, to) in
            [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
        {
            let values = item[from].as_object().cloned().unwrap_or_default();
            for (name, value) in values {
                put(inner(item, to), &name, value);
            }
        }
    }
}

/// Webhook configurations.
pub(super) fn webhooks(object: &mut Value, kind: &str) {
    for webhook in each(object, "webhooks") {
        put(webhook, "failurePolicy", json!("Fail"));
        put(webhook, "matchPolicy", json!("Equivalent"));
        put(webhook, "namespaceSelector", json!({}));
        put(webhook, "objectSelector", json!({}));
        put(webhook, "timeoutSeconds", json!(10));
        if kind == "MutatingWebhookConfiguration" {
            put(webhook, "reinvocationPolicy", json!("Never"));
        }
        if let Some(service) =
            present(webhook, "clientConfig").and_then(|config| present(config, "service"))
        {
            put(service, "port", json!(443));
        }
        for rule in each(webhook, "rules") {
            put(rule, "scope", json!("*"));
        }
    }
}

/// CustomResourceDefinition.
pub(super) fn definition(object: &mut Value) {
    let spec = inner(object, "spec");
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if !kind.is_empty() {
        let names = inner(spec, "names");
        put(names, "singular", json!(kind.to_lowercase()));
        put(names, "listKind", json!(format!("{kind}List")));
    }
    put(inner(spec, "conversion"), "strategy", json!("None"));
    if let Some(client) = present(inner(spec, "conversion"), "webhook")
        .and_then(|webhook| present(webhook, "clientConfig"))
        .and_then(|config| present(config, "service"))
    {
        put(client, "port", json!(443));
    }
}
