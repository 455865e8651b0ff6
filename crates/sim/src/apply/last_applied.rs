//! The way from client-side apply to server-side apply.
//!
//! Only for the manager `kubectl`: fields that its last client-side apply set are no conflict, and
//! the annotation that remembers that apply is kept up to date while it exists.

use serde_json::Value;

use super::compare::compare;
use super::walk::fields as fields_of;
use super::{Conflict, Writer};
use crate::schema::Schema;

/// The annotation in which `kubectl apply` keeps what it applied.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The field manager of `kubectl apply --server-side`.
const KUBECTL: &str = "kubectl";

/// The conflicts that client-side apply does not excuse.
pub(super) fn unexcused(
    schema: &Schema,
    live: &Value,
    conflicts: Vec<Conflict>,
    writer: &Writer,
) -> Vec<Conflict> {
    if writer.manager != KUBECTL {
        return conflicts;
    }
    let Some(applied) = annotation(live).and_then(|text| serde_json::from_str(text).ok()) else {
        return conflicts;
    };
    let applied: Value = applied;
    if applied["apiVersion"].as_str() != Some(&writer.api_version) {
        return conflicts;
    }
    let changes = compare(schema, &applied, live);
    let allowed = fields_of(schema, &applied)
        .difference(&changes.modified)
        .difference(&changes.added)
        .difference(&changes.removed)
        .paths();
    conflicts.into_iter().filter(|conflict| !allowed.contains(&conflict.field)).collect()
}

/// Brings the annotation up to date if the object carries it.
pub(super) fn refresh(object: &mut Value, patch: &Value, writer: &Writer) {
    if writer.manager != KUBECTL || annotation(object).is_none() {
        return;
    }
    let mut applied = patch.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    object["metadata"]["annotations"][ANNOTATION] = Value::String(format!("{applied}\n"));
}

fn annotation(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][ANNOTATION].as_str().filter(|text| !text.is_empty())
}
