//! Pods and the specs of pod templates.

use serde_json::{Value, json};

use super::report::{Node, Report};
use super::{container, placement, text, volume};

const FIXED: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// What a template belongs to.
pub(super) struct Template {
    /// The kind, for messages.
    pub(super) kind: &'static str,
    /// Volumes that come from claims rather than from the pod's spec.
    pub(super) claims: Vec<String>,
}

/// Pod.
pub(super) fn pod(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    let new = object.field("spec");
    spec(&new, &[], report);
    if let Some(old) = old {
        update(&old["spec"], &new, report);
    }
}

/// A pod spec; `claims` name volumes that are there besides its own.
pub(super) fn spec(spec: &Node<'_>, claims: &[String], report: &mut Report) {
    let mut volumes = volume::check(&spec.field("volumes"), claims.len(), report);
    volumes.extend(claims.iter().cloned());
    container::check_all(spec, &volumes, report);
    report.one_of(&spec.field("restartPolicy"), &["Always", "OnFailure", "Never"]);
    report.one_of(
        &spec.field("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    for (key, value) in spec.field("nodeSelector").entries() {
        let path = spec.field("nodeSelector").path;
        for complaint in text::qualified(key) {
            report.invalid_as(&path, &json!(key), &complaint);
        }
        for complaint in text::label_value(value.as_str().unwrap_or_default()) {
            report.invalid_as(&path, value, &complaint);
        }
    }
    security(&spec.field("securityContext"), report);
    placement::check(spec, report);
    names(spec, report);
    host_aliases(&spec.field("hostAliases"), report);
    deadline(&spec.field("activeDeadlineSeconds"), report);
}

fn names(spec: &Node<'_>, report: &mut Report) {
    for (field, rule) in [
        ("serviceAccountName", text::subdomain as fn(&str) -> Vec<String>),
        ("nodeName", text::subdomain),
        ("hostname", text::label),
        ("subdomain", text::label),
        ("priorityClassName", text::subdomain),
        ("runtimeClassName", text::subdomain),
    ] {
        let name = spec.field(field);
        if !name.is_empty() {
            report.text(&name, rule(name.text()));
        }
    }
}

fn deadline(deadline: &Node<'_>, report: &mut Report) {
    if deadline.number().is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        report.invalid(deadline, "must be between 1 and 2147483647, inclusive");
    }
}

fn host_aliases(aliases: &Node<'_>, report: &mut Report) {
    for alias in aliases.items() {
        let address = alias.field("ip");
        if address.text().parse::<std::net::IpAddr>().is_err() {
            report.invalid(&address, text::NO_ADDRESS);
        }
        for name in alias.field("hostnames").items() {
            report.text(&name, text::subdomain(name.text()));
        }
    }
}

fn security(context: &Node<'_>, report: &mut Report) {
    user_numbers(context, &["fsGroup", "runAsUser", "runAsGroup"], report);
    report.one_of_if_set(&context.field("fsGroupChangePolicy"), &["Always", "OnRootMismatch"]);
    report.one_of_if_set(
        &context.at("seccompProfile.type"),
        &["Localhost", "RuntimeDefault", "Unconfined"],
    );
}

/// Numbers of users and groups.
pub(super) fn user_numbers(context: &Node<'_>, fields: &[&str], report: &mut Report) {
    for field in fields {
        let node = context.field(field);
        if node.number().is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
            report.invalid(&node, "must be between 0 and 2147483647, inclusive");
        }
    }
}

/// Most of a pod is fixed once it exists.
fn update(old: &Value, new: &Node<'_>, report: &mut Report) {
    for list in ["containers", "initContainers"] {
        let count = |spec: &Value| spec[list].as_array().map_or(0, Vec::len);
        if count(old) != count(new.value) {
            let path = new.field(list).path;
            report.forbidden(&path, "pod updates may not add or remove containers");
            return;
        }
    }
    let before = old["tolerations"].as_array().cloned().unwrap_or_default();
    let after = new.value["tolerations"].as_array().cloned().unwrap_or_default();
    let only_added = before.iter().all(|toleration| after.contains(toleration));
    if !only_added {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        report.forbidden(&new.field("tolerations").path, detail);
    }
    if fixed(old) != fixed(new.value) {
        report.forbidden(&new.path, FIXED);
    }
}

/// A spec without what an update may change, here or by a subresource of its own.
fn fixed(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(map) = spec.as_object_mut() {
        for open in
            ["activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"]
        {
            map.remove(open);
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            container["image"] = Value::Null;
            container["resources"] = Value::Null;
        }
    }
    spec
}
