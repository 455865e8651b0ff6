//! `steadfast crds`, `manifests` and `docs`: what is installed and documented, from the code.
//!
//! Permissions come from the catalog and from what the runner itself uses, so that a verb that
//! nobody uses cannot be granted.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context;
use operators::catalog::{self, Permission};
use operators::database::parameters;
use serde_json::{Value, json};

use crate::args::Manifests;

/// Prints the definitions.
///
/// # Errors
/// When they cannot be written as YAML.
pub fn print_crds() -> anyhow::Result<ExitCode> {
    print!("{}", yaml(&crds()?)?);
    Ok(ExitCode::SUCCESS)
}

/// Prints everything to install.
///
/// # Errors
/// When it cannot be written as YAML.
pub fn print_all(options: &Manifests) -> anyhow::Result<ExitCode> {
    print!("{}", yaml(&all(&options.namespace, &options.image)?)?);
    Ok(ExitCode::SUCCESS)
}

/// Prints the tables of phases, conditions and reasons.
///
/// # Errors
/// Never today.
pub fn print_docs() -> anyhow::Result<ExitCode> {
    print!("{}", docs());
    Ok(ExitCode::SUCCESS)
}

/// The tables in Markdown.
pub fn docs() -> String {
    let mut text = String::from(
        "# Phases, conditions and reasons\n\n\
         Generated from the code by `cargo xtask generate`; do not edit.\n\n",
    );
    for row in catalog::rows() {
        let ladder = row.subject.ladder();
        text.push_str(&phased::docs::markdown(&ladder));
        let drawing = foresight::graph::mermaid(&ladder);
        text.push_str(&format!(
            "\n### Drawing of {}\n\nFrom `steadfast graph {}`.\n\n```mermaid\n{drawing}```\n",
            row.kind.kind, row.kind.kind
        ));
    }
    text.push_str("\n## Parameters that a Database refuses\n\n| Parameter | Why |\n|---|---|\n");
    for refused in parameters::REFUSED {
        text.push_str(&format!("| `{}` | {} |\n", refused.name, refused.why));
    }
    text
}

/// The custom resource definitions.
///
/// # Errors
/// When a definition cannot be serialised.
pub fn crds() -> anyhow::Result<Vec<Value>> {
    catalog::rows().iter().map(|row| Ok(serde_json::to_value((row.definition)())?)).collect()
}

/// Everything to install, in the order in which it is applied.
///
/// # Errors
/// When a definition cannot be serialised.
pub fn all(namespace: &str, image: &str) -> anyhow::Result<Vec<Value>> {
    let labels = json!({"app.kubernetes.io/name": "steadfast"});
    let mut objects = crds()?;
    objects.push(json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": {
            "app.kubernetes.io/name": "steadfast",
            "pod-security.kubernetes.io/enforce": "restricted"}},
    }));
    objects.push(json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "steadfast", "namespace": namespace, "labels": labels},
    }));
    objects.push(cluster_role());
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "steadfast", "labels": labels},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "steadfast"},
        "subjects": [{"kind": "ServiceAccount", "name": "steadfast", "namespace": namespace}],
    }));
    objects.push(deployment(namespace, image));
    Ok(objects)
}

/// What the runner uses for itself.
fn own_permissions() -> Vec<Permission> {
    vec![Permission {
        group: "events.k8s.io",
        resource: "events".to_owned(),
        verbs: vec!["create"],
        why: "Events about resources",
    }]
}

/// The ClusterRole: one rule a resource, verbs merged over controllers, in a fixed order.
pub fn cluster_role() -> Value {
    let mut rules: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    let wanted = catalog::rows().into_iter().flat_map(|row| row.permissions);
    for permission in wanted.chain(own_permissions()) {
        let verbs = rules.entry((permission.group, permission.resource)).or_default();
        for verb in permission.verbs {
            if !verbs.contains(&verb) {
                verbs.push(verb);
            }
        }
    }
    let rules: Vec<Value> = rules
        .into_iter()
        .map(|((group, resource), verbs)| {
            json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
        })
        .collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "steadfast", "labels": {"app.kubernetes.io/name": "steadfast"}},
        "rules": rules,
    })
}

/// One replica, never two at a time: the rollout stops the old process before the new one starts.
fn deployment(namespace: &str, image: &str) -> Value {
    let labels = json!({"app.kubernetes.io/name": "steadfast"});
    let probe =
        |path: &str| json!({"httpGet": {"path": path, "port": "http"}, "periodSeconds": 10});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "steadfast", "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": "steadfast",
                    "terminationGracePeriodSeconds": 30,
                    "securityContext": {"runAsNonRoot": true, "runAsUser": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [{
                        "name": "steadfast",
                        "image": image,
                        "args": ["run", "--log-format", "json"],
                        "ports": [{"name": "http", "containerPort": 8080}],
                        "livenessProbe": probe("/healthz"),
                        "readinessProbe": probe("/readyz"),
                        "resources": {
                            "requests": {"cpu": "50m", "memory": "64Mi"},
                            "limits": {"memory": "256Mi"}},
                        "securityContext": {"allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]}},
                    }],
                },
            },
        },
    })
}

/// Objects as one YAML stream.
fn yaml(objects: &[Value]) -> anyhow::Result<String> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object).context("an object is not YAML")?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}
