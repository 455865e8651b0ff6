//! Custom resources: compiles a CRD's structural schemas and holds objects to them.
//!
//! Follows `k8s.io/apiextensions-apiserver` 1.36, messages included. Conversion between versions
//! is not done here.

use std::sync::Arc;

use serde_json::Value;

use super::Schema;
use crate::status::Cause;

mod complete;
mod lists;
mod rules;
mod structural;
mod typed;
mod values;

#[cfg(test)]
mod tests;

/// One compiled version of a CRD.
#[derive(Clone, Debug)]
pub struct CompiledVersion {
    /// Version name.
    pub name: String,
    /// Typed schema.
    pub schema: Arc<Schema>,
    /// The `openAPIV3Schema`.
    source: Arc<Value>,
    /// CEL rules and patterns, compiled.
    rules: Arc<rules::Rules>,
    patterns: Arc<values::Patterns>,
    /// Whether the version has a status subresource.
    status: bool,
}

/// Checks and compiles all versions of a CRD.
///
/// # Errors
///
/// Everything that makes a schema not structural.
pub fn compile(crd: &Value) -> Result<Vec<CompiledVersion>, Vec<Cause>> {
    let causes = structural::check(crd);
    if !causes.is_empty() {
        return Err(causes);
    }
    let versions = crd["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(versions.iter().map(compile_version).collect())
}

/// What the server warns about when it accepts this CRD.
#[must_use]
pub fn warnings(crd: &Value) -> Vec<String> {
    structural::warnings(crd)
}

fn compile_version(version: &Value) -> CompiledVersion {
    let source = version["schema"]["openAPIV3Schema"].clone();
    CompiledVersion {
        name: version["name"].as_str().unwrap_or_default().to_owned(),
        schema: Arc::new(typed::root(&source)),
        rules: Arc::new(rules::Rules::compile(&source)),
        patterns: Arc::new(values::Patterns::compile(&source)),
        status: version["subresources"].get("status").is_some_and(Value::is_object),
        source: Arc::new(source),
    }
}

impl CompiledVersion {
    /// Drops unknown fields; returns their paths in order, for strict validation and warnings.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        complete::prune_root(&self.source, object)
    }

    /// Fills in defaults, drops nulls that mean nothing, and brings the metadata into stored form.
    pub fn default(&self, object: &mut Value) {
        complete::default_root(&self.source, object);
    }

    /// Everything wrong with `new`: types, bounds, patterns, duplicate list items, and, if those
    /// leave no doubt about types, the CEL rules. What an update leaves unchanged is not held
    /// against it. A change of nothing but the status is judged as a write to `/status`.
    #[must_use]
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = match old {
            Some(before) if self.status && only_status_differs(new, before) => {
                match (&self.source["properties"]["status"], new.get("status")) {
                    (schema, Some(status)) if schema.is_object() => values::check_part(
                        schema,
                        status,
                        before.get("status"),
                        &self.patterns,
                        "status",
                    ),
                    _ => Vec::new(),
                }
            }
            _ => values::check(&self.source, new, old, &self.patterns),
        };
        if old.is_none_or(|old| lists::duplicates(&self.source, old).is_empty()) {
            causes.extend(lists::duplicates(&self.source, new));
        }
        if causes.iter().any(blocks_rules) {
            causes.push(Cause::new(
                "FieldValueInvalid",
                "<nil>",
                "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
            ));
        } else {
            causes.extend(self.rules.check(&self.source, new, old));
        }
        causes
    }
}

/// Whether rules would be run over values whose type is in doubt.
fn blocks_rules(cause: &Cause) -> bool {
    matches!(
        cause.reason,
        "FieldValueNotSupported"
            | "FieldValueRequired"
            | "FieldValueTooLong"
            | "FieldValueTooMany"
            | "FieldValueTypeInvalid"
    )
}

fn only_status_differs(new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.as_object().cloned().unwrap_or_default();
        object.remove("status");
        object.remove("metadata");
        object
    };
    new.get("status") != old.get("status") && rest(new) == rest(old)
}

/// The old item that corresponds to `item` of a list with this schema: by key in a keyed list.
fn old_item<'a>(schema: &Value, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
    let keys = schema["x-kubernetes-list-map-keys"].as_array()?;
    old?.as_array()?.iter().find(|other| {
        keys.iter().filter_map(Value::as_str).all(|key| other.get(key) == item.get(key))
    })
}

/// The schema of the value under `key` of an object with this schema.
fn child<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema["properties"]
        .get(key)
        .or_else(|| schema.get("additionalProperties").filter(|extra| extra.is_object()))
}

fn flag(schema: &Value, name: &str) -> bool {
    schema[name] == true
}
