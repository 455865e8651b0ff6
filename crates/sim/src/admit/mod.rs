//! Defaults, stored form and validation of built-in kinds (design.md section 4).
//!
//! Pure functions over values, worded and ordered as kube-apiserver 1.36 does it. What needs other
//! objects (quota, addresses, namespaces) is no business of this module.

use base64::Engine as _;
use serde_json::Value;

use crate::kind::Kind;
use crate::schema::built_in;
use crate::status::Cause;

mod check;
mod defaults;

/// Fills in defaults as kube-apiserver does. Doing it twice changes nothing.
pub fn default(kind: &Kind, object: &mut Value) {
    if !kind.custom {
        // The server's decoder makes structs of nulls before anything is filled in.
        if has_null(object) {
            normalize(kind, object);
        }
        defaults::fill(kind, object);
    }
}

/// Fills in what the server's own admission plugins and allocators fill in from the object alone,
/// after ownership has been recorded: nobody owns these fields. Doing it twice changes nothing.
pub fn plugins(kind: &Kind, object: &mut Value) {
    if !kind.custom {
        defaults::plugins(kind, object);
    }
}

/// Everything wrong with `object`; `old` is the stored object in an update.
#[must_use]
pub fn validate(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    check::check(kind, object, old)
}

/// The form in which the server stores it: what its typed structs keep, in canonical spelling.
/// Of a custom resource that is true of the metadata only.
pub fn normalize(kind: &Kind, object: &mut Value) {
    if kind.is("", "Secret") {
        keep_strings(object);
    }
    let schema = if kind.custom { None } else { built_in(&kind.group, &kind.version, &kind.kind) };
    match schema {
        Some(schema) => schema.settle(object),
        None => {
            if let Some(metadata) = object.get_mut("metadata")
                && let Some(schema) = crate::schema::object_metadata()
            {
                schema.settle(metadata);
            }
        }
    }
}

/// Whether a list somewhere in the object has a null item.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| item.is_null() || has_null(item)),
        Value::Object(object) => object.values().any(has_null),
        _ => false,
    }
}

/// Moves `stringData` of a Secret into `data`.
fn keep_strings(secret: &mut Value) {
    let Some(map) = secret.as_object_mut() else { return };
    let Some(Value::Object(strings)) = map.remove("stringData") else { return };
    for (key, value) in strings {
        let text = value.as_str().unwrap_or_default();
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        secret["data"][key] = Value::String(encoded);
    }
}

#[cfg(test)]
mod tests;
