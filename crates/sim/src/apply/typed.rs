//! Whether an applied configuration fits its schema at all.
//!
//! The server refuses an apply with an unknown or wrongly typed field before it merges anything.

use serde_json::Value;

use super::walk::step;
use crate::schema::{List, Relation, Scalar, Schema};

/// Checks an applied configuration against the schema of its kind.
///
/// # Errors
///
/// One line a problem, as kube-apiserver lists them after `failed to create typed patch object
/// (namespace/name; group/version, Kind=Kind): `.
pub fn check(schema: &Schema, config: &Value) -> Result<(), String> {
    let mut errors = Vec::new();
    visit(schema, config, "", &mut errors);
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!(
            "errors:\n{}",
            many.iter().map(|error| format!("  {error}")).collect::<Vec<_>>().join("\n")
        )),
    }
}

fn visit(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    match (schema.resolve(), value) {
        (Schema::Map(map), Value::Object(object)) => {
            for (key, value) in object {
                let here = format!("{path}.{key}");
                let Some(child) = map.child(key) else {
                    errors.push(format!("{here}: field not declared in schema"));
                    return;
                };
                visit(child, value, &here, errors);
            }
        }
        (Schema::List(list), Value::Array(items)) => visit_items(list, items, path, errors),
        (Schema::Map(_), other) => {
            errors.push(place(path, &format!("expected map, got &{{{}}}", go(other))));
        }
        (Schema::List(_), other) => {
            errors.push(place(path, &format!("expected list, got &{{{}}}", go(other))));
        }
        (Schema::Scalar(scalar), value) => {
            errors.extend(mismatch(*scalar, value).map(|text| place(path, &text)));
        }
        _ => {}
    }
}

fn place(path: &str, text: &str) -> String {
    if path.is_empty() { text.to_owned() } else { format!("{path}: {text}") }
}

fn visit_items(list: &List, items: &[Value], path: &str, errors: &mut Vec<String>) {
    let mut seen = std::collections::BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let here = if list.relation == Relation::Atomic {
            format!("{path}[{index}]")
        } else {
            let Some(step) = step(list, item) else {
                errors.push(place(path, &format!("element {index}: {}", nameless(list, item))));
                return;
            };
            if !seen.insert(step.clone()) {
                errors.push(place(path, &format!("duplicate entries for key {step}")));
            }
            format!("{path}{step}")
        };
        visit(&list.item, item, &here, errors);
    }
}

fn nameless(list: &List, item: &Value) -> String {
    match &list.relation {
        Relation::Keys(_) if item.is_null() => {
            "associative list with keys may not have a null element".to_owned()
        }
        Relation::Keys(keys) if item.is_object() => format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(" ")
        ),
        Relation::Keys(_) => "associative list with keys may not have non-map elements".to_owned(),
        Relation::Set | Relation::Atomic if item.is_object() => {
            "associative list without keys has an element that's a map type".to_owned()
        }
        Relation::Set | Relation::Atomic if item.is_array() => {
            "not supported: associative list with lists as elements".to_owned()
        }
        Relation::Set | Relation::Atomic => {
            "associative list without keys has an element that's an explicit null".to_owned()
        }
    }
}

/// The complaint about a value that is not of a scalar type.
fn mismatch(scalar: Scalar, value: &Value) -> Option<String> {
    let raw = || format!("&value.valueUnstructured{{Value:{}}}", go_syntax(value));
    match scalar {
        Scalar::Text | Scalar::Bytes => {
            (!value.is_string()).then(|| format!("expected string, got {}", raw()))
        }
        Scalar::Integer(_) | Scalar::Number => (!value.is_number())
            .then(|| format!("expected numeric (int or float), got {}", go_kind(value))),
        Scalar::Boolean => {
            (!value.is_boolean()).then(|| format!("expected boolean, got &{{{}}}", go(value)))
        }
        Scalar::Quantity
        | Scalar::IntOrString
        | Scalar::Time
        | Scalar::MicroTime
        | Scalar::Untyped => (value.is_object() || value.is_array())
            .then(|| format!("expected any scalar, got &{{{}}}", go(value))),
    }
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it: `map[a:1 b:[x y]]`.
fn go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(go).collect::<Vec<_>>().join(" "))
        }
        Value::Object(object) => {
            let pairs: Vec<String> =
                object.iter().map(|(key, value)| format!("{key}:{}", go(value))).collect();
            format!("map[{}]", pairs.join(" "))
        }
        other => other.to_string(),
    }
}

/// A value as Go source: `map[string]interface {}{"a":1}`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            format!(
                "[]interface {{}}{{{}}}",
                items.iter().map(go_syntax).collect::<Vec<_>>().join(", ")
            )
        }
        Value::Object(object) => {
            let pairs: Vec<String> =
                object.iter().map(|(key, value)| format!("{key:?}:{}", go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", pairs.join(", "))
        }
        other => other.to_string(),
    }
}
