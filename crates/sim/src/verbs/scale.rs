//! The scale subresource: an `autoscaling/v1` Scale in front of an object's replicas.

use serde_json::{Value, json};

use super::metadata;
use crate::kind::Kind;
use crate::status::Failure;

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
        let cause = crate::Cause::new(
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

fn pointer(path: &str) -> String {
    path.replace('.', "/")
}
