//! Reading and writing of the fields that many kinds share, on plain JSON objects.
//!
//! Must not decide anything: a missing field reads as empty, and the caller says what that means.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The value at a JSON pointer. serde_json's own copies each step of the path; this is asked too
/// often for that.
pub(crate) fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(object, |place, step| match place {
        Value::Object(map) if step.contains('~') => {
            map.get(&step.replace("~1", "/").replace("~0", "~"))
        }
        Value::Object(map) => map.get(step),
        Value::Array(list) => list.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Text at a JSON pointer; empty when absent or not text.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).and_then(Value::as_str).unwrap_or("")
}

/// Whole number at a JSON pointer.
pub(crate) fn number(object: &Value, pointer: &str, absent: i64) -> i64 {
    at(object, pointer).and_then(Value::as_i64).unwrap_or(absent)
}

/// Flag at a JSON pointer; false when absent.
pub(crate) fn flag(object: &Value, pointer: &str) -> bool {
    at(object, pointer).and_then(Value::as_bool).unwrap_or(false)
}

/// List at a JSON pointer; empty when absent.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    at(object, pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Map at a JSON pointer, cloned; empty when absent.
pub(crate) fn map(object: &Value, pointer: &str) -> Map<String, Value> {
    at(object, pointer).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// String map at a JSON pointer (labels, annotations, `matchLabels`, Secret data).
pub(crate) fn strings(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let entries = at(object, pointer).and_then(Value::as_object);
    entries
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `metadata.namespace`; empty for cluster objects.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// Whether a deletion was asked for.
pub(crate) fn deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// `metadata.labels`.
pub(crate) fn labels(object: &Value) -> BTreeMap<String, String> {
    strings(object, "/metadata/labels")
}

/// Whether `metadata.finalizers` holds this one.
pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    list(object, "/metadata/finalizers").iter().any(|held| held == finalizer)
}

/// Adds or removes one finalizer; says whether the object changed.
pub(crate) fn set_finalizer(object: &mut Value, finalizer: &str, wanted: bool) -> bool {
    if has_finalizer(object, finalizer) == wanted {
        return false;
    }
    let mut held = list(object, "/metadata/finalizers").to_vec();
    if wanted {
        held.push(json!(finalizer));
    } else {
        held.retain(|one| one != finalizer);
    }
    if held.is_empty() {
        remove(object, "/metadata", "finalizers");
    } else {
        object["metadata"]["finalizers"] = Value::Array(held);
    }
    true
}

/// Removes a member of the map at `pointer`, if both are there.
pub(crate) fn remove(object: &mut Value, pointer: &str, member: &str) {
    if let Some(map) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
        map.remove(member);
    }
}

/// One condition of `status.conditions`.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").iter().find(|one| one["type"] == kind)
}

/// Whether a condition stands at `True`.
pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|one| one["status"] == "True")
}

/// The owner reference with `controller: true`.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    list(object, "/metadata/ownerReferences").iter().find(|one| flag(one, "/controller"))
}

/// An owner reference to `owner`, as controllers write it.
pub(crate) fn owner_reference(owner: &Value, controller: bool) -> Value {
    json!({
        "apiVersion": text(owner, "/apiVersion"),
        "kind": text(owner, "/kind"),
        "name": name(owner),
        "uid": uid(owner),
        "controller": controller,
        "blockOwnerDeletion": true,
    })
}

/// A time stamp field.
pub(crate) fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok()
}

/// A time stamp as the API writes it: whole seconds, UTC.
pub(crate) fn stamp(at: Timestamp) -> String {
    let seconds = Timestamp::from_second(at.as_second()).unwrap_or(at);
    seconds.to_string()
}

/// Whether labels satisfy a `metav1.LabelSelector` (or a Service's plain map).
pub(crate) fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let equal = strings(selector, "/matchLabels");
    let all_equal = equal.iter().all(|(key, value)| labels.get(key) == Some(value));
    all_equal && list(selector, "/matchExpressions").iter().all(|rule| expression(rule, labels))
}

fn expression(rule: &Value, labels: &BTreeMap<String, String>) -> bool {
    let held = labels.get(text(rule, "/key"));
    let among = |value: &String| list(rule, "/values").iter().any(|one| one == value.as_str());
    match text(rule, "/operator") {
        "In" => held.is_some_and(among),
        "NotIn" => !held.is_some_and(among),
        "Exists" => held.is_some(),
        "DoesNotExist" => held.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_follow_the_four_operators() {
        let labels = BTreeMap::from([("app".to_owned(), "db".to_owned())]);
        let cases = [
            (json!({"matchLabels": {"app": "db"}}), true),
            (json!({"matchLabels": {"app": "web"}}), false),
            (json!({}), true),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}),
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a"]}]}),
                true,
            ),
            (json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}), false),
            (json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}), true),
        ];
        for (selector, expected) in cases {
            assert_eq!(selects(&selector, &labels), expected, "{selector}");
        }
    }
}
