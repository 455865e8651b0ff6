//! Pruning and defaulting of custom resources.
//!
//! Never refuses anything: what does not fit is left for validation to find.

use serde_json::Value;

use super::{child, flag};
use crate::schema::object_metadata;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
/// Fields that every object has, whatever its schema says.
const STANDARD: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops the unknown fields of a whole object; returns their paths in order.
pub(super) fn prune_root(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    prune(schema, object, "", true, &mut unknown);
    if let (Some(metadata), Some(schema)) = (object.get_mut("metadata"), object_metadata()) {
        let found = schema.prune(metadata);
        unknown.extend(found.into_iter().map(|path| format!("metadata.{path}")));
    }
    unknown.sort();
    unknown
}

fn prune(schema: &Value, value: &mut Value, path: &str, resource: bool, unknown: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            let preserve = flag(schema, PRESERVE);
            object.retain(|key, _| {
                let known = preserve
                    || child(schema, key).is_some()
                    || schema["additionalProperties"] == true
                    || (resource && STANDARD.contains(&key.as_str()));
                if !known {
                    unknown.push(join(path, key));
                }
                known
            });
            for (key, value) in object.iter_mut() {
                if resource && STANDARD.contains(&key.as_str()) {
                    continue;
                }
                if let Some(schema) = child(schema, key) {
                    let embedded = flag(schema, EMBEDDED);
                    prune(schema, value, &join(path, key), embedded, unknown);
                }
            }
        }
        Value::Array(items) => {
            let schema = &schema["items"];
            for (index, item) in items.iter_mut().enumerate().filter(|_| schema.is_object()) {
                prune(schema, item, &format!("{path}[{index}]"), flag(schema, EMBEDDED), unknown);
            }
        }
        _ => {}
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Defaults a whole object.
pub(super) fn default_root(schema: &Value, object: &mut Value) {
    whole_numbers(object);
    default(schema, object);
    if let (Some(metadata), Some(schema)) = (object.get_mut("metadata"), object_metadata()) {
        schema.settle(metadata);
    }
}

/// The server stores `1.0` as `1`.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|_| number.is_f64())
                && float.fract() == 0.0
                && float.abs() < 9e15
            {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "whole and in range, see above"
                )]
                let whole = float as i64;
                *value = Value::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(object) => object.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(properties) = schema["properties"].as_object() {
                for (key, schema) in properties {
                    let empty = object
                        .get(key)
                        .is_none_or(|value| value.is_null() && !flag(schema, "nullable"));
                    if let Some(default) = schema.get("default").filter(|_| empty) {
                        object.insert(key.clone(), default.clone());
                    } else if empty {
                        object.remove(key);
                    }
                }
            }
            let extra = &schema["additionalProperties"];
            if extra.is_object() {
                object.retain(|_, value| {
                    if value.is_null() && !flag(extra, "nullable") {
                        *value = extra["default"].clone();
                    }
                    !value.is_null() || flag(extra, "nullable")
                });
            }
            for (key, value) in object.iter_mut() {
                if let Some(schema) = child(schema, key) {
                    default(schema, value);
                }
            }
        }
        Value::Array(items) => {
            let schema = &schema["items"];
            for item in items {
                if item.is_null() && !flag(schema, "nullable") {
                    *item = schema["default"].clone();
                }
                default(schema, item);
            }
        }
        _ => {}
    }
}
