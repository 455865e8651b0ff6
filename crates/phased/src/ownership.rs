//! Who holds a field, read from `metadata.managedFields`.
//!
//! The form is that of `fieldsV1`: `f:<name>` for a field, `k:{<keys>}` for an item of a list by
//! its merge keys, `v:<value>` for an item of a set, `i:<place>` for an item by place; a node
//! without members is held as a whole. Must not decide what to do about it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

use crate::compare::{Path, Segment, key_part};
use crate::object::Live;

/// The manager, other than `us`, that holds the field at `path`: the one that wrote last, if there
/// are several. `None` when nobody else holds it, or when we hold it too: then the value is ours
/// and nobody changed it.
pub fn holder(live: &Live, path: &Path, us: &str) -> Option<String> {
    let holding: Vec<&ManagedFieldsEntry> = holding(live, path).collect();
    if holding.iter().any(|entry| entry.manager.as_deref() == Some(us)) {
        return None;
    }
    holding
        .into_iter()
        .max_by_key(|entry| entry.time.as_ref().map(|t| t.0))
        .and_then(|entry| entry.manager.clone())
}

/// Whether `us` holds the field at `path`. Whoever changes a field takes it over, so a value that
/// differs from what its holder sent was changed on its way into the store.
pub fn is_held_by(live: &Live, path: &Path, us: &str) -> bool {
    holding(live, path).any(|entry| entry.manager.as_deref() == Some(us))
}

fn holding<'a>(live: &'a Live, path: &'a Path) -> impl Iterator<Item = &'a ManagedFieldsEntry> {
    live.metadata
        .managed_fields
        .iter()
        .flatten()
        .filter(|entry| entry.fields_v1.as_ref().is_some_and(|f| holds(&f.0, path, &live.value)))
}

/// Whether a field set holds the field at `path`, or something below it, or a whole above it.
fn holds(set: &Value, path: &Path, live: &Value) -> bool {
    let mut node = set;
    let mut value = Some(live);
    for (depth, segment) in path.0.iter().enumerate() {
        let Some(members) = node.as_object() else { return false };
        if members.is_empty() {
            // The root of an empty set holds nothing; any other memberless node is a whole.
            return depth > 0;
        }
        let next = value.and_then(|v| segment.child(v));
        let Some(below) = member(members, segment, next) else { return false };
        node = below;
        value = next;
    }
    true
}

fn member<'a>(
    members: &'a Map<String, Value>,
    segment: &Segment,
    item: Option<&Value>,
) -> Option<&'a Value> {
    match segment {
        Segment::Field(name) => members.get(&format!("f:{name}")),
        Segment::Index(place) => {
            let item = item?;
            members.iter().find_map(|(name, below)| names(name, *place, item).then_some(below))
        }
        Segment::Absent(key) => {
            members.iter().find_map(|(name, below)| is_key(name, key).then_some(below))
        }
    }
}

/// Whether the member `name` of a field set means the absent item that [`compare`](crate::compare)
/// calls `key`.
fn is_key(name: &str, key: &str) -> bool {
    let Some(Ok(Value::Object(keys))) = name.strip_prefix("k:").map(serde_json::from_str) else {
        return false;
    };
    let mut held: Vec<String> = keys.iter().map(|(name, value)| key_part(name, value)).collect();
    let mut absent: Vec<&str> = key.split(',').collect();
    held.sort();
    absent.sort_unstable();
    held == absent
}

/// Whether the member `name` of a field set means this item of a list.
fn names(name: &str, place: usize, item: &Value) -> bool {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    if let Some(keys) = name.strip_prefix("k:") {
        let Some(Value::Object(keys)) = parsed(keys) else { return false };
        return keys.iter().all(|(key, value)| item.get(key) == Some(value));
    }
    if let Some(value) = name.strip_prefix("v:") {
        return parsed(value).as_ref() == Some(item);
    }
    name.strip_prefix("i:").and_then(|n| n.parse().ok()) == Some(place)
}
