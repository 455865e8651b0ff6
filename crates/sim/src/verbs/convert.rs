//! One stored form, several served ones: versions of a CRD, and both Event APIs.
//!
//! Custom kinds convert with strategy `None`: only `apiVersion` changes. Webhooks are not modelled.

use serde_json::{Value, json};

use crate::kind::Kind;

/// Names of the same Event field in `events.k8s.io/v1` and in core `v1`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Whether fields of `kind` are stored under other names than they are shown.
pub(super) fn renames(kind: &Kind) -> bool {
    kind.group == "events.k8s.io"
}

/// The form in which an object of `kind` is stored.
pub(super) fn stored(kind: &Kind, mut object: Value) -> Value {
    if renames(kind) {
        rename(&mut object, |(new, old)| (new, old));
        object["apiVersion"] = json!("v1");
    }
    object
}

/// A stored object in the version of `kind`.
pub(crate) fn shown(kind: &Kind, stored: &Value) -> Value {
    let mut object = stored.clone();
    if renames(kind) {
        rename(&mut object, |(new, old)| (old, new));
        // The old API always shows these two, the new one only when they say something.
        if let Some(map) = object.as_object_mut() {
            map.retain(|field, value| !field.starts_with("reporting") || *value != json!(""));
        }
    }
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.kind);
    object
}

fn rename(
    object: &mut Value,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(map) = object.as_object_mut() else { return };
    for pair in EVENT_FIELDS {
        let (from, to) = direction(pair);
        if let Some(value) = map.remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
}
