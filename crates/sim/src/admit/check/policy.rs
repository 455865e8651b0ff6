//! Budgets, roles, leases, quotas and other small kinds.

use serde_json::{Value, json};

use super::report::{Node, Report};
use super::workload::{at_most_all, share};
use super::{selector, text};
use crate::quantity::Quantity;

const RBAC: &str = "rbac.authorization.k8s.io";

/// PodDisruptionBudget.
pub(super) fn budget(object: &Node<'_>, report: &mut Report) {
    let spec = object.field("spec");
    let (least, most) = (spec.field("minAvailable"), spec.field("maxUnavailable"));
    if !least.value.is_null() && !most.value.is_null() {
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            least.value,
            spec.value["selector"],
            most.value,
            spec.value["unhealthyPodEvictionPolicy"]
        );
        let detail = "minAvailable and maxUnavailable cannot be both set";
        report.invalid_struct(&spec.path, &shown, detail);
    }
    for node in [&least, &most] {
        share(node, report);
        at_most_all(node, report);
    }
    report.one_of_if_set(
        &spec.field("unhealthyPodEvictionPolicy"),
        &["AlwaysAllow", "IfHealthyBudget"],
    );
    selector::check(&spec.field("selector"), report);
}

/// Role and ClusterRole.
pub(super) fn role(object: &Node<'_>, namespaced: bool, report: &mut Report) {
    for rule in object.field("rules").items() {
        let field = |name: &str| rule.field(name);
        if field("verbs").is_empty() {
            report.required(&field("verbs").path, "verbs must contain at least one value");
        }
        let urls = field("nonResourceURLs");
        if !urls.is_empty() {
            if namespaced {
                report.invalid(&urls, "namespaced rules cannot apply to non-resource URLs");
            }
            continue;
        }
        if field("apiGroups").is_empty() {
            let detail = "resource rules must supply at least one api group";
            report.required(&field("apiGroups").path, detail);
        }
        if field("resources").is_empty() {
            let detail = "resource rules must supply at least one resource";
            report.required(&field("resources").path, detail);
        }
    }
}

/// RoleBinding and ClusterRoleBinding.
pub(super) fn binding(
    object: &Node<'_>,
    namespaced: bool,
    old: Option<&Value>,
    report: &mut Report,
) {
    let role = object.field("roleRef");
    report.one_of(&role.field("apiGroup"), &[RBAC]);
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    report.one_of(&role.field("kind"), kinds);
    let name = role.field("name");
    if name.is_empty() {
        report.required(&name.path, "");
    } else {
        report.text(&name, text::path_segment(name.text()));
    }
    for subject in object.field("subjects").items() {
        let name = subject.field("name");
        if name.is_empty() {
            report.required(&name.path, "");
        }
        report.one_of(&subject.field("kind"), &["ServiceAccount", "User", "Group"]);
        if subject.field("kind").text() == "ServiceAccount" && !name.is_empty() {
            report.text(&name, text::subdomain(name.text()));
        }
        let homeless = subject.field("kind").text() == "ServiceAccount"
            && subject.field("namespace").is_empty();
        if homeless && !namespaced {
            report.required(&subject.field("namespace").path, "");
        }
    }
    if old.is_some_and(|old| old["roleRef"] != *role.value) {
        let shown = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            role.value["apiGroup"], role.value["kind"], role.value["name"]
        );
        report.invalid_struct(&role.path, &shown, "cannot change roleRef");
    }
}

/// Lease.
pub(super) fn lease(object: &Node<'_>, report: &mut Report) {
    let duration = object.at("spec.leaseDurationSeconds");
    if duration.number().is_some_and(|seconds| seconds <= 0) {
        report.invalid(&duration, "must be greater than 0");
    }
    report.not_negative(&object.at("spec.leaseTransitions"));
}

/// ResourceQuota.
pub(super) fn quota(object: &Node<'_>, report: &mut Report) {
    let hard = object.at("spec.hard");
    for (name, value) in hard.entries() {
        let node = hard.key(name);
        if !name.contains('/') && !name.contains('.') && !standard(name) {
            let detail = "must be a standard resource type or fully qualified";
            report.invalid_as(&node.path, &json!(name), detail);
            report.invalid_as(&node.path, &json!(name), "must be a standard resource for quota");
        }
        if amount(value).is_some_and(|amount| amount.is_negative()) {
            report.invalid(&node, "must be greater than or equal to 0");
        }
    }
}

fn standard(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "cpu",
        "memory",
        "ephemeral-storage",
        "storage",
        "pods",
        "services",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "resourcequotas",
        "replicationcontrollers",
        "hugepages-2Mi",
    ];
    NAMES.contains(&name)
}

fn amount(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?).ok()
}

/// LimitRange.
pub(super) fn limits(object: &Node<'_>, report: &mut Report) {
    for item in object.at("spec.limits").items() {
        for (name, value) in item.field("min").entries() {
            let Some(least) = amount(value) else { continue };
            for (field, words) in
                [("max", "max"), ("defaultRequest", "default request"), ("default", "default")]
            {
                let other = item.field(field).key(name);
                let Some(most) = amount(other.value).filter(|most| least > *most) else { continue };
                let detail = format!("min value {least} is greater than {words} value {most}");
                match field {
                    "max" => report.invalid(&item.field("min").key(name), &detail),
                    // The server shows the smaller value here, whichever it is.
                    "default" => report.invalid_as(&other.path, value, &detail),
                    _ => report.invalid(&other, &detail),
                }
            }
        }
    }
}

/// Event of the core group.
pub(super) fn event(object: &Node<'_>, report: &mut Report) {
    let regarding = object.at("involvedObject.namespace");
    let own = object.at("metadata.namespace");
    let home = if own.is_empty() { "default" } else { own.text() };
    if !regarding.is_empty() && regarding.text() != home {
        report.invalid(&regarding, "does not match event.namespace");
    }
}

/// PriorityClass.
pub(super) fn priority(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    if old.is_some_and(|old| old["value"] != object.value["value"]) {
        report.forbidden("value", "may not be changed in an update.");
    }
}
