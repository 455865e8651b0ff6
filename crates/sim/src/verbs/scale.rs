//! The scale subresource: an `autoscaling/v1` Scale in front of an object's replicas.

use serde_json::{Value, json};

use super::metadata;
use crate::kind::Kind;
use crate::status::{Cause, Failure};

/// The Scale of an object.
///
/// # Errors
/// 404 when the kind has no scale subresource.
pub(crate) fn of(kind: &Kind, object: &Value) -> Result<Value, Failure> {
    let paths = kind.scale.as_ref().ok_or_else(Failure::no_such_resource)?;
    let number = |path: &str| object.pointer(&pointer(path)).and_then(Value::as_i64).unwrap_or(0);
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata::text(object, "name"),
            "namespace": metadata::text(object, "namespace"),
            "uid": metadata::text(object, "uid"),
            "resourceVersion": metadata::text(object, "resourceVersion"),
            "creationTimestamp": metadata::text(object, "creationTimestamp"),
        },
        "spec": { "replicas": number(&paths.spec_replicas) },
        "status": { "replicas": number(&paths.status_replicas) },
    });
    if let Some(path) = &paths.selector {
        scale["status"]["selector"] = match object.pointer(&pointer(path)) {
            Some(Value::String(text)) => json!(text),
            Some(selector) => json!(crate::selector::labels_text(selector)),
            None => Value::Null,
        };
    }
    if let Some(spec) = scale["spec"].as_object_mut() {
        spec.retain(|_, replicas| *replicas != json!(0));
    }
    if let Some(status) = scale["status"].as_object_mut() {
        status.retain(|_, value| !value.is_null());
    }
    Ok(scale)
}

/// `live` with the replicas that `wanted`, a Scale, asks for.
///
/// # Errors
/// 404 when the kind has no scale subresource, 422 for a negative number.
pub(super) fn scaled(kind: &Kind, live: &Value, wanted: &Value) -> Result<Value, Failure> {
    let paths = kind.scale.as_ref().ok_or_else(Failure::no_such_resource)?;
    let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas < 0 {
        let cause = Cause::new(
            "FieldValueInvalid",
            "spec.replicas",
            format!("Invalid value: {replicas}: must be greater than or equal to 0"),
        );
        let mut shown = kind.clone();
        shown.group = "autoscaling".to_owned();
        shown.kind = "Scale".to_owned();
        return Err(Failure::invalid(&shown, metadata::text(live, "name"), vec![cause]));
    }
    let mut object = live.clone();
    let mut place = &mut object;
    for step in paths.spec_replicas.trim_start_matches('.').split('.') {
        place = &mut place[step];
    }
    *place = json!(replicas);
    for field in ["resourceVersion", "uid"] {
        match wanted["metadata"][field].as_str() {
            None | Some("") => {}
            Some(text) => object["metadata"][field] = json!(text),
        }
    }
    Ok(object)
}

/// What is wrong with the numbers that a custom kind's scale subresource shows.
pub(super) fn causes(kind: &Kind, object: &Value) -> Vec<Cause> {
    let Some(paths) = &kind.scale else { return Vec::new() };
    let wrong = |path: &String| {
        let value = object.pointer(&pointer(path)).filter(|value| !value.is_null())?;
        let (shown, why) = match value.as_i64() {
            Some(number) if number < 0 => (number, "should be a non-negative integer".to_owned()),
            Some(number) if number > i64::from(i32::MAX) => {
                (number, format!("should be less than or equal to {}", i32::MAX))
            }
            Some(_) => return None,
            None => (0, accessor_error(path, value)),
        };
        Some(Cause::new("FieldValueInvalid", path, format!("Invalid value: {shown}: {why}")))
    };
    [&paths.spec_replicas, &paths.status_replicas].into_iter().filter_map(wrong).collect()
}

fn accessor_error(path: &str, value: &Value) -> String {
    let (shown, type_) = match value {
        Value::String(text) => (text.clone(), "string"),
        Value::Bool(flag) => (flag.to_string(), "bool"),
        Value::Number(number) => (number.to_string(), "float64"),
        Value::Array(_) => (value.to_string(), "[]interface {}"),
        _ => (value.to_string(), "map[string]interface {}"),
    };
    format!("{path} accessor error: {shown} is of the type {type_}, expected int64")
}

fn pointer(path: &str) -> String {
    path.replace('.', "/")
}
