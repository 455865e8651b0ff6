//! The edit as `kubectl apply` makes it on the client's side: a three-way merge of what was applied
//! last, what is to be applied, and what is there.
//!
//! For custom resources kubectl uses JSON merge patches, in which lists are replaced as a whole. Must
//! not talk to a server; the patch is sent as a dry run by the caller.

use serde_json::{Map, Value, json};

use crate::change::LAST_APPLIED;

/// Metadata that a server writes: what `kubectl get -o yaml` shows and nobody should apply.
const SERVERS_OWN: [&str; 7] = [
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Takes out what a server writes. Answers the fields that were there.
pub fn strip(manifest: &mut Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in SERVERS_OWN {
            // An empty time stamp is what `kubectl create --dry-run` writes; it says nothing.
            if metadata.remove(field).is_some_and(|value| !value.is_null()) {
                found.push(format!("metadata.{field}"));
            }
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    if let Some(fields) = manifest.as_object_mut()
        && fields.remove("status").is_some_and(|status| status != json!({}))
    {
        found.push("status".to_owned());
    }
    found
}

/// The manifest with the annotation in which kubectl remembers it.
pub fn remembered(manifest: &Value) -> Value {
    let mut plain = manifest.clone();
    if !plain["metadata"]["annotations"].is_object() {
        plain["metadata"]["annotations"] = json!({});
    }
    let mut whole = plain.clone();
    whole["metadata"]["annotations"][LAST_APPLIED] = json!(format!("{plain}\n"));
    whole
}

/// The merge patch that `kubectl apply` sends for an object that exists.
pub fn patch(manifest: &Value, live: &Value) -> Value {
    let wanted = remembered(manifest);
    let last = live["metadata"]["annotations"][LAST_APPLIED].as_str();
    let last: Value = last.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut patch = additions(live, &wanted);
    deletions(&last, &wanted, live, &mut patch);
    Value::Object(patch)
}

/// What is wanted and differs; nothing is taken away.
fn additions(live: &Value, wanted: &Value) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, value) in wanted.as_object().into_iter().flatten() {
        match (live.get(name), value) {
            (Some(there), value) if there == value => {}
            (Some(there), Value::Object(_)) if there.is_object() => {
                let below = additions(there, value);
                if !below.is_empty() {
                    patch.insert(name.clone(), Value::Object(below));
                }
            }
            (_, Value::Null) => {}
            (_, value) => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    patch
}

/// What was applied last and is wanted no more goes.
fn deletions(last: &Value, wanted: &Value, live: &Value, patch: &mut Map<String, Value>) {
    for (name, value) in last.as_object().into_iter().flatten() {
        match wanted.get(name) {
            None | Some(Value::Null) => {
                if live.get(name).is_some() {
                    patch.insert(name.clone(), Value::Null);
                }
            }
            Some(still) if value.is_object() && still.is_object() => {
                let there = live.get(name).cloned().unwrap_or_default();
                let mut below = match patch.get(name) {
                    Some(Value::Object(below)) => below.clone(),
                    _ => Map::new(),
                };
                deletions(value, still, &there, &mut below);
                if !below.is_empty() {
                    patch.insert(name.clone(), Value::Object(below));
                }
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(last: &Value) -> Value {
        json!({
            "metadata": {"name": "a", "uid": "u", "annotations": {
                "kept": "by others", LAST_APPLIED: last.to_string()}},
            "spec": {"image": "x:1", "size": "1Gi", "extra": {"a": 1, "b": 2}, "others": true},
        })
    }

    #[test]
    fn what_was_applied_and_is_gone_goes_and_what_others_set_stays() {
        let last = json!({"metadata": {"name": "a"},
            "spec": {"image": "x:1", "size": "1Gi", "extra": {"a": 1}}});
        let manifest = json!({"metadata": {"name": "a"}, "spec": {"image": "x:2", "extra": {}}});
        let patch = patch(&manifest, &live(&last));
        assert_eq!(patch["spec"], json!({"image": "x:2", "size": null, "extra": {"a": null}}));
        assert_eq!(patch["metadata"].as_object().map(Map::len), Some(1), "only the annotation");
    }

    #[test]
    fn the_same_manifest_again_is_an_empty_patch() {
        let manifest = json!({"metadata": {"name": "a"}, "spec": {"image": "x:1"}});
        let mut live = live(&json!({}));
        live["metadata"]["annotations"][LAST_APPLIED] =
            remembered(&manifest)["metadata"]["annotations"][LAST_APPLIED].clone();
        assert_eq!(patch(&manifest, &live), json!({}));
    }

    #[test]
    fn a_dump_is_stripped_of_what_the_server_writes() {
        let mut dump = live(&json!({}));
        dump["metadata"]["resourceVersion"] = json!("7");
        dump["metadata"]["creationTimestamp"] = Value::Null;
        dump["status"] = json!({"phase": "Ready"});
        assert_eq!(strip(&mut dump), ["metadata.resourceVersion", "metadata.uid", "status"]);
        assert_eq!(dump["metadata"], json!({"name": "a", "annotations": {"kept": "by others"}}));
    }
}
