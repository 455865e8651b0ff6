//! Where a pod may run: tolerations, affinity, spread.

use serde_json::json;

use super::report::{Node, Report};
use super::{selector, text};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks the placement of a pod spec.
pub(super) fn check(spec: &Node<'_>, report: &mut Report) {
    let affinity = spec.field("affinity");
    node_affinity(&affinity.field("nodeAffinity"), report);
    for kind in ["podAffinity", "podAntiAffinity"] {
        pod_affinity(&affinity.field(kind), report);
    }
    for toleration in spec.field("tolerations").items() {
        self::toleration(&toleration, report);
    }
    for spread in spec.field("topologySpreadConstraints").items() {
        self::spread(&spread, report);
    }
}

fn toleration(toleration: &Node<'_>, report: &mut Report) {
    let (key, operator) = (toleration.field("key"), toleration.field("operator"));
    let (value, effect) = (toleration.field("value"), toleration.field("effect"));
    if !key.is_empty() {
        report.text(&key, text::qualified(key.text()));
    } else if operator.text() != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        report.invalid(&operator, detail);
    }
    if !toleration.field("tolerationSeconds").value.is_null() && effect.text() != "NoExecute" {
        report.invalid(&effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    match operator.text() {
        "" | "Equal" => {
            for complaint in text::label_value(value.text()) {
                report.invalid_as(&operator.path, &json!(value.text()), &complaint);
            }
        }
        "Exists" => {
            if !value.is_empty() {
                let detail = "value must be empty when `operator` is 'Exists'";
                report.invalid_as(&operator.path, value.value, detail);
            }
        }
        other => {
            report.unsupported(&operator.path, &json!(other).to_string(), &["Equal", "Exists"])
        }
    }
    report.one_of_if_set(&effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
}

fn node_affinity(affinity: &Node<'_>, report: &mut Report) {
    if let Some(required) = affinity.some(REQUIRED) {
        let terms = required.field("nodeSelectorTerms");
        if terms.is_empty() {
            report.required(&terms.path, "must have at least one node selector term");
        }
        terms.items().for_each(|term| node_term(&term, report));
    }
    for preferred in affinity.field(PREFERRED).items() {
        weight(&preferred.field("weight"), report);
        node_term(&preferred.field("preference"), report);
    }
}

fn node_term(term: &Node<'_>, report: &mut Report) {
    for rule in term.field("matchExpressions").items() {
        let (operator, values) = (rule.field("operator"), rule.field("values"));
        match operator.text() {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                    report.required(&values.path, detail);
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let detail =
                        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    report.forbidden(&values.path, detail);
                }
            }
            "Gt" | "Lt" => {
                if values.items().count() != 1 {
                    let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                    report.required(&values.path, detail);
                }
            }
            _ => report.invalid(&operator, "not a valid selector operator"),
        }
        let key = rule.field("key");
        report.text(&key, text::qualified(key.text()));
    }
}

fn pod_affinity(affinity: &Node<'_>, report: &mut Report) {
    for term in affinity.field(REQUIRED).items() {
        pod_term(&term, report);
    }
    for preferred in affinity.field(PREFERRED).items() {
        weight(&preferred.field("weight"), report);
        pod_term(&preferred.field("podAffinityTerm"), report);
    }
}

fn weight(weight: &Node<'_>, report: &mut Report) {
    if weight.number().is_none_or(|number| !(1..=100).contains(&number)) {
        report.invalid(weight, "must be in the range 1-100");
    }
}

fn pod_term(term: &Node<'_>, report: &mut Report) {
    selector::check(&term.field("labelSelector"), report);
    let key = term.field("topologyKey");
    if key.is_empty() {
        report.required(&key.path, "can not be empty");
    }
    for complaint in text::qualified(key.text()) {
        report.invalid_as(&key.path, &json!(key.text()), &complaint);
    }
}

fn spread(spread: &Node<'_>, report: &mut Report) {
    let skew = spread.field("maxSkew");
    if skew.number().is_none_or(|number| number <= 0) {
        report.invalid(&skew, "must be greater than zero");
    }
    let key = spread.field("topologyKey");
    if key.is_empty() {
        report.required(&key.path, "can not be empty");
    }
    report.one_of(&spread.field("whenUnsatisfiable"), &["DoNotSchedule", "ScheduleAnyway"]);
    selector::check(&spread.field("labelSelector"), report);
}
