//! Duplicates in lists that are sets or have keys.

use serde_json::{Map, Value};

use super::child;
use crate::status::Cause;

/// Every duplicate in `value`.
pub(super) fn duplicates(schema: &Value, value: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    visit(schema, value, "", &mut causes);
    causes
}

fn visit(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let declared = schema["properties"].get(key.as_str()).is_some();
                if let Some(schema) = child(schema, key) {
                    let here = match (path, declared) {
                        ("", _) => key.clone(),
                        (path, true) => format!("{path}.{key}"),
                        (path, false) => format!("{path}[{key}]"),
                    };
                    visit(schema, value, &here, causes);
                }
            }
        }
        Value::Array(items) => {
            let mut seen: Vec<Value> = Vec::new();
            for (index, item) in items.iter().enumerate() {
                if let Some(identity) = identity(schema, item) {
                    if seen.contains(&identity) {
                        causes.push(Cause::new(
                            "FieldValueDuplicate",
                            format!("{path}[{index}]"),
                            format!("Duplicate value: {identity}"),
                        ));
                    }
                    seen.push(identity);
                }
                visit(&schema["items"], item, &format!("{path}[{index}]"), causes);
            }
        }
        _ => {}
    }
}

/// What tells an item from the others; none in a list where repetition is fine.
fn identity(schema: &Value, item: &Value) -> Option<Value> {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Some(item.clone()),
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array()?;
            let item = item.as_object()?;
            let keys: Map<String, Value> = keys
                .iter()
                .filter_map(Value::as_str)
                .filter_map(|key| Some((key.to_owned(), item.get(key)?.clone())))
                .collect();
            Some(Value::Object(keys))
        }
        _ => None,
    }
}
