//! Label selectors.

use serde_json::{Value, json};

use super::metadata;
use super::report::{Node, Report};
use super::text;

/// A `LabelSelector`; true if it could be evaluated.
pub(super) fn check(selector: &Node<'_>, report: &mut Report) -> bool {
    let before = report.causes.len();
    metadata::labels(&selector.field("matchLabels"), report);
    for rule in selector.field("matchExpressions").items() {
        let (operator, values) = (rule.field("operator"), rule.field("values"));
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                report.required(&values.path, detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => report.forbidden(
                &values.path,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => report.invalid_as(
                &operator.path,
                &json!(operator.text()),
                "not a valid selector operator",
            ),
        }
        for value in values.items() {
            report.text(&value, text::label_value(value.text()));
        }
        let key = rule.field("key");
        for complaint in text::qualified(key.text()) {
            report.invalid_as(&key.path, &json!(key.text()), &complaint);
        }
    }
    report.causes.len() == before
}

/// Whether a selector selects these labels.
pub(super) fn matches(selector: &Value, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let equal = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| label(key) == value.as_str());
    equal
        && selector["matchExpressions"].as_array().into_iter().flatten().all(|rule| {
            let found = label(rule["key"].as_str().unwrap_or_default());
            let named = found.is_some_and(|found| {
                rule["values"].as_array().is_some_and(|values| values.contains(&json!(found)))
            });
            match rule["operator"].as_str() {
                Some("In") => named,
                Some("NotIn") => !named,
                Some("Exists") => found.is_some(),
                _ => found.is_none(),
            }
        })
}
