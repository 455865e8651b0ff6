//! Kinds that run pods from a template.

use serde_json::{Value, json};

use super::pod::{self, Template};
use super::report::{Node, Report};
use super::{metadata, selector, storage, text};

/// Fields of a StatefulSet's spec that an update may change.
const OPEN_FIELDS: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// StatefulSet.
pub(super) fn stateful_set(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    let spec = object.field("spec");
    let policy = spec.field("podManagementPolicy");
    if !["OrderedReady", "Parallel"].contains(&policy.text()) {
        report.invalid(&policy, "must be 'OrderedReady' or 'Parallel'");
    }
    set_strategy(&spec.field("updateStrategy"), report);
    for field in ["whenDeleted", "whenScaled"] {
        let policy = spec.field("persistentVolumeClaimRetentionPolicy").field(field);
        report.one_of(&policy, &["Retain", "Delete"]);
    }
    for field in ["replicas", "minReadySeconds"] {
        report.not_negative(&spec.field(field));
    }
    report.not_negative(&spec.at("ordinals.start"));
    let name = spec.field("serviceName");
    if !name.is_empty() {
        report.text(&name, text::label(name.text()));
    }
    choose(&spec, "statefulset", report);
    for claim in spec.field("volumeClaimTemplates").items() {
        storage::claim_spec(&claim.field("spec"), report);
    }
    let template = Template { kind: "StatefulSet", claims: claim_names(&spec) };
    template_of(&spec, &template, report);
    set_status(&object.field("status"), old, report);
    if let Some(old) = old
        && closed(&old["spec"]) != closed(spec.value)
    {
        let mut names: Vec<String> = OPEN_FIELDS.iter().map(|name| format!("'{name}'")).collect();
        let last = names.pop().unwrap_or_default();
        let detail = format!(
            "updates to statefulset spec for fields other than {} and {last} are forbidden",
            names.join(", ")
        );
        report.forbidden("spec", &detail);
    }
}

/// Counts of a status; checked only where it changes, since nobody else can write it.
fn set_status(status: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    if old.is_none_or(|old| old["status"] == *status.value) {
        return;
    }
    let counts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    let number = |field: &str| status.field(field).number().unwrap_or(0);
    report.not_negative(&status.field("replicas"));
    for field in counts.iter().chain(&["observedGeneration", "collisionCount"]) {
        report.not_negative(&status.field(field));
    }
    let mut above = |field: &str, limit: &str| {
        if number(field) > number(limit) {
            let path = status.field(field).path;
            let detail = format!("cannot be greater than status.{limit}");
            report.invalid_as(&path, &json!(number(field)), &detail);
        }
    };
    for field in counts {
        above(field, "replicas");
    }
    above("availableReplicas", "readyReplicas");
}

fn claim_names(spec: &Node<'_>) -> Vec<String> {
    spec.field("volumeClaimTemplates")
        .items()
        .filter_map(|claim| claim.value["metadata"]["name"].as_str().map(str::to_owned))
        .collect()
}

/// The part of a spec that an update may not change.
fn closed(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(map) = spec.as_object_mut() {
        map.retain(|field, _| !OPEN_FIELDS.contains(&field.as_str()));
    }
    for claim in spec["volumeClaimTemplates"].as_array_mut().into_iter().flatten() {
        claim["status"] = Value::Null;
    }
    spec
}

fn set_strategy(strategy: &Node<'_>, report: &mut Report) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "RollingUpdate" => report.not_negative(&rolling.field("partition")),
        "OnDelete" => {
            if !rolling.value.is_null() {
                let part = |field: &str| rolling.value.get(field).cloned().unwrap_or(Value::Null);
                let shown = format!(
                    "{{\"Partition\":{},\"MaxUnavailable\":{}}}",
                    part("partition"),
                    part("maxUnavailable")
                );
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                report.invalid_struct(&rolling.path, &shown, detail);
            }
        }
        other => {
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":null}}", json!(other));
            report.invalid_struct(&strategy.path, &shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

/// Deployment.
pub(super) fn deployment(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    let spec = object.field("spec");
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit"] {
        report.not_negative(&spec.field(field));
    }
    choose(&spec, "deployment", report);
    template_of(&spec, &Template { kind: "Deployment", claims: Vec::new() }, report);
    deployment_strategy(&spec.field("strategy"), report);
    let deadline = spec.field("progressDeadlineSeconds");
    let ready = spec.field("minReadySeconds").number().unwrap_or(0);
    if let Some(seconds) = deadline.number() {
        report.not_negative(&deadline);
        if seconds <= ready {
            report.invalid(&deadline, "must be greater than minReadySeconds");
        }
    }
    fixed_selector(&spec, old, report);
}

fn deployment_strategy(strategy: &Node<'_>, report: &mut Report) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "Recreate" => {
            if !rolling.value.is_null() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                report.forbidden(&rolling.path, detail);
            }
        }
        "RollingUpdate" => {
            let (surge, down) = (rolling.field("maxSurge"), rolling.field("maxUnavailable"));
            share(&down, report);
            share(&surge, report);
            if none(surge.value) && none(down.value) {
                report.invalid(&down, "may not be 0 when `maxSurge` is 0");
            }
            at_most_all(&down, report);
        }
        other => {
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":null}}", json!(other));
            report.unsupported(&strategy.path, &shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

/// A count or a percentage that is not negative.
pub(super) fn share(node: &Node<'_>, report: &mut Report) {
    match node.value {
        Value::String(percent) => report.text(node, text::percent(percent)),
        Value::Number(_) => report.not_negative(node),
        _ => {}
    }
}

/// A percentage of at most 100.
pub(super) fn at_most_all(node: &Node<'_>, report: &mut Report) {
    let percent = node.text().strip_suffix('%').and_then(|digits| digits.parse::<i64>().ok());
    if percent.is_some_and(|percent| percent > 100) {
        report.invalid(node, "must not be greater than 100%");
    }
}

fn none(value: &Value) -> bool {
    *value == 0 || *value == "0%"
}

/// DaemonSet.
pub(super) fn daemon_set(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    let spec = object.field("spec");
    choose(&spec, "daemonset", report);
    template_of(&spec, &Template { kind: "DaemonSet", claims: Vec::new() }, report);
    report.not_negative(&spec.field("minReadySeconds"));
    let strategy = spec.field("updateStrategy");
    match strategy.field("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.field("rollingUpdate");
            let (surge, down) = (rolling.field("maxSurge"), rolling.field("maxUnavailable"));
            share(&down, report);
            share(&surge, report);
            at_most_all(&down, report);
            at_most_all(&surge, report);
            if none(surge.value) && none(down.value) {
                report.required(&down.path, "cannot be 0 when maxSurge is 0");
            } else if !none(surge.value) && !none(down.value) {
                report.invalid(&surge, "may not be set when maxUnavailable is non-zero");
            }
        }
        other => {
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":null}}", json!(other));
            report.unsupported(&strategy.path, &shown, &["RollingUpdate", "OnDelete"]);
        }
    }
    report.not_negative(&spec.field("revisionHistoryLimit"));
    fixed_selector(&spec, old, report);
}

/// ReplicaSet.
pub(super) fn replica_set(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    let spec = object.field("spec");
    for field in ["replicas", "minReadySeconds"] {
        report.not_negative(&spec.field(field));
    }
    // The server's message names the Deployment here too.
    choose(&spec, "deployment", report);
    template_of(&spec, &Template { kind: "ReplicaSet", claims: Vec::new() }, report);
    fixed_selector(&spec, old, report);
}

fn fixed_selector(spec: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    if old.is_some_and(|old| old["spec"]["selector"] != spec.value["selector"]) {
        report.invalid(&spec.field("selector"), "field is immutable");
    }
}

/// The selector must be there, well formed, not empty, and select the template.
fn choose(spec: &Node<'_>, kind: &str, report: &mut Report) {
    let chosen = spec.field("selector");
    let labels = spec.at("template.metadata.labels");
    let mismatch = "`selector` does not match template `labels`";
    if chosen.value.is_null() {
        if kind != "daemonset" {
            report.required(&chosen.path, "");
        }
        report.invalid(&labels, mismatch);
        return;
    }
    let well_formed = selector::check(&chosen, report);
    let bare =
        chosen.field("matchLabels").is_empty() && chosen.field("matchExpressions").is_empty();
    if bare {
        report.invalid(&chosen, &format!("empty selector is invalid for {kind}"));
    } else if !well_formed {
        match kind {
            "statefulset" => report.invalid(&chosen, ""),
            "daemonset" => {}
            _ => report.invalid(&chosen, "invalid label selector"),
        }
    } else if !selector::matches(chosen.value, labels.value) {
        report.invalid(&labels, mismatch);
    }
}

fn template_of(spec: &Node<'_>, kind: &Template, report: &mut Report) {
    let template = spec.field("template");
    for (field, check) in [
        ("labels", metadata::labels as fn(&Node<'_>, &mut Report)),
        ("annotations", metadata::annotations),
    ] {
        // The server leaves "metadata" out of this path.
        let node = Node {
            value: &template.value["metadata"][field],
            path: format!("{}.{field}", template.path),
        };
        check(&node, report);
    }
    let inner = template.field("spec");
    pod::spec(&inner, &kind.claims, report);
    let policy = inner.field("restartPolicy");
    let known = ["Always", "OnFailure", "Never"].contains(&policy.text());
    if policy.text() != "Always" && known {
        report.unsupported(&policy.path, &json!(policy.text()).to_string(), &["Always"]);
    }
    let deadline = inner.field("activeDeadlineSeconds");
    if !deadline.value.is_null() {
        let detail = format!("activeDeadlineSeconds in {} is not Supported", kind.kind);
        report.forbidden(&deadline.path, &detail);
    }
}
