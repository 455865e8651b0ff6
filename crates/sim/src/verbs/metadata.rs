//! `metadata` as the server keeps it: what clients may not write, finalizers, deletion marks.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock;
use crate::kind::Kind;
use crate::status::{Cause, Failure};

/// A text field of the metadata; empty when absent.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or("")
}

/// The finalizers.
pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

/// Replaces the finalizers; an empty list is not stored.
pub(crate) fn set_finalizers(object: &mut Value, names: &[String]) {
    if names.is_empty() {
        remove(object, "finalizers");
    } else {
        object["metadata"]["finalizers"] = json!(names);
    }
}

/// Whether deletion has begun.
pub(crate) fn deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Removes one metadata field.
pub(crate) fn remove(object: &mut Value, field: &str) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove(field);
    }
}

/// Makes sure `metadata` is an object.
pub(crate) fn ensure(object: &mut Value) {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
}

/// Adds one to the generation of an object that has one.
pub(crate) fn next_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64() {
        object["metadata"]["generation"] = json!(generation + 1);
    }
}

/// Marks an object as being deleted, with `grace` seconds to go.
pub(crate) fn mark_deleting(object: &mut Value, now: Timestamp, grace: i64) {
    let at = now.saturating_add(jiff::SignedDuration::from_secs(grace)).unwrap_or(now);
    object["metadata"]["deletionTimestamp"] = json!(clock::seconds(at));
    object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
    next_generation(object);
}

/// Fields that only the server writes; an update gets them from the stored object.
const SERVER_FIELDS: [&str; 5] = [
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

/// What a client sent for fields that only the server writes is replaced by what is stored.
pub(crate) fn restore(object: &mut Value, live: &Value) {
    ensure(object);
    for field in SERVER_FIELDS {
        match live["metadata"].get(field) {
            Some(value) => object["metadata"][field] = value.clone(),
            None => remove(object, field),
        }
    }
    for field in ["name", "namespace", "uid"] {
        if text(object, field).is_empty()
            && let Some(value) = live["metadata"].get(field)
        {
            object["metadata"][field] = value.clone();
        }
    }
    tidy(object);
}

/// Drops metadata fields that Go's `omitempty` would not write.
pub(crate) fn tidy(object: &mut Value) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}

/// Causes of metadata changes that no kind allows.
pub(crate) fn update_causes(object: &Value, live: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["name", "namespace", "uid"] {
        let (new, old) = (text(object, field), text(live, field));
        if new != old {
            causes.push(Cause::new(
                "FieldValueInvalid",
                format!("metadata.{field}"),
                format!("Invalid value: \"{new}\": field is immutable"),
            ));
        }
    }
    causes.extend(finalizer_causes(object, live));
    causes
}

fn finalizer_causes(object: &Value, live: &Value) -> Option<Cause> {
    if !deleting(live) {
        return None;
    }
    let known = finalizers(live);
    let new: Vec<String> =
        finalizers(object).into_iter().filter(|name| !known.contains(name)).collect();
    if new.is_empty() {
        return None;
    }
    let quoted: Vec<String> = new.iter().map(|name| format!("\"{name}\"")).collect();
    Some(Cause::new(
        "FieldValueForbidden",
        "metadata.finalizers",
        format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            quoted.join(", ")
        ),
    ))
}

/// Checks that body and URL name the same object, and fills in what the body leaves out.
pub(crate) fn place(
    kind: &Kind,
    namespace: &str,
    name: Option<&str>,
    object: &mut Value,
) -> Result<(), Failure> {
    ensure(object);
    if kind.namespaced {
        match text(object, "namespace") {
            "" => object["metadata"]["namespace"] = json!(namespace),
            same if same == namespace => {}
            _ => {
                return Err(Failure::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
        }
    } else {
        remove(object, "namespace");
    }
    let Some(name) = name else { return Ok(()) };
    match text(object, "name") {
        "" => object["metadata"]["name"] = json!(name),
        same if same == name => {}
        other => {
            return Err(Failure::bad_request(format!(
                "the name of the object ({other}) does not match the name on the URL ({name})"
            )));
        }
    }
    Ok(())
}
