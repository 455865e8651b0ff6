//! What the server makes of an apply: the merge by field ownership, on plain data.
//!
//! Fields of others stay, fields that the manager no longer declares go, items of lists match by
//! their keys. Must not fill in defaults: a field that goes and has a default comes back with it,
//! which the next comparison does not count as a difference.

use phased::compare::{Path, Segment};
use phased::stored::{self, Matching};
use serde_json::{Map, Value};

/// The object after `manager` applied `intent` with force.
pub fn merged(live: &Value, intent: &Value, manager: &str) -> Value {
    let mut after = live.clone();
    let mut ours = Vec::new();
    let mut others = Vec::new();
    for entry in live["metadata"]["managedFields"].as_array().into_iter().flatten() {
        let applied = entry["operation"] == "Apply" && entry.get("subresource").is_none();
        let set = &entry["fieldsV1"];
        if applied && entry["manager"] == manager { ours.push(set) } else { others.push(set) }
    }
    for set in ours {
        prune(&mut after, set, Some(intent), &others);
    }
    overlay(&mut after, intent, &Path::default());
    after
}

/// Removes what `set` holds, `intent` does not declare, and nobody else holds.
fn prune(value: &mut Value, set: &Value, intent: Option<&Value>, others: &[&Value]) {
    for (member, below) in set.as_object().into_iter().flatten() {
        let held: Vec<&Value> = others.iter().filter_map(|other| other.get(member)).collect();
        if let Some(name) = member.strip_prefix("f:") {
            prune_field(value, name, (below, intent), &held);
        } else if let Some(keys) = member.strip_prefix("k:") {
            let keys: Value = serde_json::from_str(keys).unwrap_or_default();
            prune_item(value, &keys, (below, intent), &held);
        }
    }
}

fn prune_field(
    value: &mut Value,
    name: &str,
    (below, intent): (&Value, Option<&Value>),
    held: &[&Value],
) {
    let wanted = intent.and_then(|intent| intent.get(name));
    let leaf = below.as_object().is_none_or(Map::is_empty);
    let Some(fields) = value.as_object_mut() else { return };
    let Some(child) = fields.get_mut(name) else { return };
    if leaf {
        if wanted.is_none() && held.is_empty() {
            fields.remove(name);
        }
        return;
    }
    prune(child, below, wanted, held);
    if wanted.is_none() && held.is_empty() && is_empty(child) {
        fields.remove(name);
    }
}

fn prune_item(
    list: &mut Value,
    keys: &Value,
    (below, intent): (&Value, Option<&Value>),
    held: &[&Value],
) {
    let is_it = |item: &Value| {
        keys.as_object().into_iter().flatten().all(|(key, value)| match item.get(key) {
            Some(found) => found == value,
            None => key == "protocol" && value == "TCP",
        })
    };
    let wanted = intent.and_then(Value::as_array).and_then(|all| all.iter().find(|i| is_it(i)));
    let Some(items) = list.as_array_mut() else { return };
    let Some(place) = items.iter().position(is_it) else { return };
    if wanted.is_none() && held.is_empty() {
        items.remove(place);
    } else {
        prune(&mut items[place], below, wanted, held);
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Lays what is declared over what is there.
fn overlay(value: &mut Value, intent: &Value, path: &Path) {
    match (value, intent) {
        (_, Value::Null) => {}
        (Value::Object(fields), Value::Object(declared)) if !is_atomic(path) => {
            for (name, wanted) in declared {
                let place = fields.entry(name.clone()).or_insert(Value::Null);
                overlay(place, wanted, &path.field(name));
            }
        }
        (Value::Array(items), Value::Array(declared)) => overlay_list(items, declared, path),
        (value, intent) => {
            if !same(value, intent, path) {
                *value = intent.clone();
            }
        }
    }
}

fn overlay_list(items: &mut Vec<Value>, declared: &[Value], path: &Path) {
    match stored::matching(path) {
        Matching::Keys(keys) => {
            for wanted in declared {
                let key = stored::key_of(wanted, keys);
                let place = items.iter().position(|item| stored::key_of(item, keys) == key);
                match place {
                    Some(place) if key.is_some() => {
                        overlay(&mut items[place], wanted, &index(path, place));
                    }
                    _ => items.push(wanted.clone()),
                }
            }
        }
        Matching::Anywhere if last(path) == "finalizers" => {
            let missing: Vec<Value> =
                declared.iter().filter(|one| !items.contains(one)).cloned().collect();
            items.extend(missing);
        }
        // Replaced as a whole, but the defaults that the server filled into an item stay with it.
        Matching::Anywhere | Matching::ByPlace if items.len() == declared.len() => {
            for (place, wanted) in declared.iter().enumerate() {
                overlay(&mut items[place], wanted, &index(path, place));
            }
        }
        Matching::Anywhere | Matching::ByPlace => *items = declared.to_vec(),
    }
}

/// Whether a scalar means the same: quantities by their amount.
fn same(value: &Value, intent: &Value, path: &Path) -> bool {
    value == intent || (stored::is_quantity(path) && amount(value) == amount(intent))
}

pub(crate) fn amount(value: &Value) -> Option<phased::quantity::Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// Maps that an apply replaces as a whole.
fn is_atomic(path: &Path) -> bool {
    match path.0.as_slice() {
        [Segment::Field(first), Segment::Field(last)] if first == "spec" => last == "selector",
        _ => matches!(last(path), "matchLabels" | "nodeSelector"),
    }
}

fn last(path: &Path) -> &str {
    match path.0.last() {
        Some(Segment::Field(name)) => name,
        _ => "",
    }
}

pub(crate) fn index(path: &Path, place: usize) -> Path {
    let mut longer = path.clone();
    longer.0.push(Segment::Index(place));
    longer
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live() -> Value {
        json!({
            "metadata": {"name": "a", "managedFields": [
                {"manager": "steadfast/x", "operation": "Apply", "fieldsV1": {
                    "f:spec": {"f:replicas": {}, "f:paused": {}, "f:template": {"f:spec": {
                        "f:containers": {
                            "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}},
                            "k:{\"name\":\"old\"}": {".": {}, "f:name": {}}}}}}}},
                {"manager": "mesh", "operation": "Update", "fieldsV1": {
                    "f:spec": {"f:paused": {}}}}]},
            "spec": {"replicas": 1, "paused": true, "template": {"spec": {"containers": [
                {"name": "web", "image": "a:1", "imagePullPolicy": "Always"},
                {"name": "old"},
                {"name": "side-car"}]}}},
        })
    }

    #[test]
    fn what_is_declared_no_more_goes_and_what_others_hold_stays() {
        let intent = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "web", "image": "a:2"}]}}}});
        let after = merged(&live(), &intent, "steadfast/x");
        assert_eq!(after["spec"]["replicas"], Value::Null, "only we held it");
        assert_eq!(after["spec"]["paused"], true, "the mesh holds it too");
        let containers = &after["spec"]["template"]["spec"]["containers"];
        assert_eq!(
            containers[0],
            json!({"name": "web", "image": "a:2", "imagePullPolicy": "Always"})
        );
        assert_eq!(containers[1], json!({"name": "side-car"}), "the old one went");
    }

    #[test]
    fn an_amount_written_in_another_way_is_no_change() {
        let live = json!({"spec": {"resources": {"requests": {"cpu": "1"}}}});
        let intent = json!({"spec": {"resources": {"requests": {"cpu": "1000m"}}}});
        assert_eq!(merged(&live, &intent, "m"), live);
    }
}
