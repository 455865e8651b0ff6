//! Strategic merge.
//!
//! Knows the merge marks of the schema and the directives of the patch; validates nothing else.

use serde_json::{Map as Object, Value};

use crate::schema::{Map, Schema, Shape, Strategic};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

const BAD_RETAIN: &str = "invalid patch format of retainKeys";
const BAD_ORDER: &str = "invalid patch format of setElementOrder list";

type Fields = Object<String, Value>;

/// See [`super::strategic`].
pub(super) fn merge(schema: &Schema, live: &Value, patch: &Value) -> Result<Value, String> {
    let (Some(live), Some(patch)) = (live.as_object(), patch.as_object()) else {
        return Err(
            "json: cannot unmarshal array into Go value of type map[string]interface {}".into()
        );
    };
    merge_map(schema, live.clone(), patch.clone()).map(Value::Object)
}

fn merge_map(schema: &Schema, mut live: Fields, mut patch: Fields) -> Result<Fields, String> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Fields::new()),
            _ => {
                let word = directive.as_str().map_or_else(|| directive.to_string(), str::to_owned);
                patch.insert(DIRECTIVE.to_owned(), directive);
                Err(format!("unknown patch type: {word} in map: {}", go(&Value::Object(patch))))
            }
        };
    }
    retain(&mut live, &mut patch)?;
    order(schema, &mut live, &mut patch)?;
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix(DELETE) {
            delete_items(&mut live, list, &value);
            continue;
        }
        if value.is_null() {
            live.remove(&key);
            continue;
        }
        let merged = match (live.remove(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                Some(Value::Object(merge_map(child(schema, &key), old, new)?))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                Some(Value::Array(merge_list(schema, &key, old, new)?))
            }
            (_, new) => plain(new),
        };
        if let Some(merged) = merged {
            live.insert(key, merged);
        }
    }
    Ok(live)
}

/// The schema of what lies under `key`.
fn child<'a>(schema: &'a Schema, key: &str) -> &'a Schema {
    struct_of(schema).and_then(|map| map.child(key)).unwrap_or(&Schema::Any)
}

fn struct_of(schema: &Schema) -> Option<&Map> {
    match schema.shape(None) {
        Shape::Map(map) => Some(map),
        _ => None,
    }
}

fn marks(schema: &Schema, key: &str) -> Strategic {
    struct_of(schema)
        .and_then(|map| map.fields.get(key))
        .map(|field| field.strategic.clone())
        .unwrap_or_default()
}

fn item<'a>(schema: &'a Schema, key: &str) -> &'a Schema {
    match child(schema, key).resolve() {
        Schema::List(list) => &list.item,
        _ => &Schema::Any,
    }
}

/// A patch value where the object has nothing: without nulls and directives; none if the value is
/// itself a directive.
fn plain(value: Value) -> Option<Value> {
    match value {
        Value::Object(object) if object.contains_key(DIRECTIVE) => None,
        Value::Object(object) => Some(Value::Object(
            object
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .filter_map(|(key, value)| Some((key, plain(value)?)))
                .collect(),
        )),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(plain).collect())),
        other => Some(other),
    }
}

/// `$retainKeys`: drops what the list does not name.
fn retain(live: &mut Fields, patch: &mut Fields) -> Result<(), String> {
    let Some(list) = patch.remove(RETAIN) else { return Ok(()) };
    let list = list.as_array().ok_or(BAD_RETAIN)?;
    let named = |key: &String| list.iter().any(|name| name.as_str() == Some(key));
    for (key, value) in patch.iter() {
        let directive = key.starts_with(DELETE) || key.starts_with(ORDER);
        if !value.is_null() && !directive && !named(key) {
            return Err(BAD_RETAIN.to_owned());
        }
    }
    live.retain(|key, _| named(key));
    Ok(())
}

/// `$deleteFromPrimitiveList/list`.
fn delete_items(live: &mut Fields, list: &str, gone: &Value) {
    let gone = gone.as_array().map_or(&[][..], Vec::as_slice);
    if let Some(Value::Array(items)) = live.get_mut(list) {
        items.retain(|item| !gone.contains(item));
    }
}

/// `$setElementOrder/list`: merges that list and orders it; takes both from the patch.
fn order(schema: &Schema, live: &mut Fields, patch: &mut Fields) -> Result<(), String> {
    let ordered: Vec<String> =
        patch.keys().filter_map(|key| key.strip_prefix(ORDER)).map(str::to_owned).collect();
    for name in ordered {
        let order = match patch.remove(&format!("{ORDER}{name}")) {
            Some(Value::Array(order)) => order,
            _ => return Err(BAD_ORDER.to_owned()),
        };
        let key = marks(schema, &name).key;
        let old = list_of(live.get(&name))?;
        let new = list_of(patch.get(&name))?;
        check_order(new.as_deref().unwrap_or_default(), &order, key.as_deref())?;
        if old.iter().chain(&new).all(Vec::is_empty) && (old.is_some() || new.is_some()) {
            return Err("no elements in any of the given slices".to_owned());
        }
        let seen = overwritten(old.as_deref(), new.as_deref(), key.as_deref());
        let merged = match (&old, new) {
            (Some(old), None) => old.clone(),
            (None, Some(new)) => new.into_iter().filter_map(plain).collect(),
            (Some(old), Some(new)) => merge_list(schema, &name, old.clone(), new)?,
            (None, None) => continue,
        };
        let sorted = arrange(merged, &order, &seen, key.as_deref());
        live.insert(name.clone(), Value::Array(sorted));
        patch.remove(&name);
    }
    Ok(())
}

/// The live list as the server sees it after merging: its merge removes and appends in the same
/// memory, so that new items take the places that removed ones left at the end.
fn overwritten(old: Option<&[Value]>, new: Option<&[Value]>, key: Option<&str>) -> Vec<Value> {
    let mut seen = old.unwrap_or_default().to_vec();
    let (Some(new), Some(key)) = (new, key) else { return seen };
    let mut length = seen.len();
    let directive = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str).map(str::to_owned);
    for gone in new.iter().filter(|item| directive(item).as_deref() == Some("delete")) {
        while let Some(at) = seen[..length].iter().position(|item| item.get(key) == gone.get(key)) {
            seen[at..length].rotate_left(1);
            if length >= 2 && at + 1 < length {
                seen[length - 1] = seen[length - 2].clone();
            }
            length -= 1;
        }
    }
    if new.iter().any(|item| directive(item).as_deref() == Some("replace")) {
        return seen;
    }
    for item in new.iter().filter(|item| directive(item).is_none()) {
        let known = length.min(seen.len());
        if seen[..known].iter().any(|other| other.get(key) == item.get(key)) {
            continue;
        }
        if let Some(place) = seen.get_mut(length) {
            *place = item.clone();
        }
        length += 1;
    }
    seen
}

fn list_of(value: Option<&Value>) -> Result<Option<Vec<Value>>, String> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(_) => Err("expected a []interface {}, but received a different type".to_owned()),
    }
}

/// The patch list must keep to the order that the directive names.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), String> {
    if order.is_empty() {
        return Ok(());
    }
    let deletes =
        |item: &&Value| key.is_some() && item.get(DIRECTIVE).is_some_and(|word| word == "delete");
    let mut items = patch.iter().filter(|item| !deletes(item)).peekable();
    let mut rest = order.iter();
    while let Some(item) = items.peek() {
        if rest.len() == 0 {
            let (patch, order) =
                (go(&Value::Array(patch.to_vec())), go(&Value::Array(order.to_vec())));
            return Err(format!(
                "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
            ));
        }
        let skipped = item.get(DIRECTIVE).is_some();
        if skipped || rest.next().is_some_and(|named| same(named, item, key)) {
            items.next();
        }
    }
    Ok(())
}

/// Whether two items are the same item: equal, or equal in their merge key.
fn same(a: &Value, b: &Value, key: Option<&str>) -> bool {
    match key {
        Some(key) => a.get(key).is_some() && a.get(key) == b.get(key),
        None => a == b,
    }
}

fn merge_list(
    schema: &Schema,
    name: &str,
    old: Vec<Value>,
    new: Vec<Value>,
) -> Result<Vec<Value>, String> {
    let marks = marks(schema, name);
    if !marks.merge {
        return Ok(new);
    }
    let maps = old.iter().chain(&new).any(Value::is_object);
    let Some(key) = marks.key.as_deref().filter(|_| maps) else {
        if maps {
            return Err(format!("cannot merge lists without merge key for {name}"));
        }
        let mut merged: Vec<Value> = Vec::new();
        for item in old.iter().chain(&new) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return Ok(arrange(merged, &new, &old, None));
    };
    let (mut merged, patch) = special_items(old, new, key)?;
    let before = merged.clone();
    for wanted in &patch {
        let wanted_key = wanted.get(key).ok_or_else(|| no_key(wanted, key))?;
        let found = merged.iter_mut().find(|item| item.get(key) == Some(wanted_key));
        match (found, wanted) {
            (Some(Value::Object(live)), Value::Object(wanted)) => {
                *live = merge_map(item(schema, name), live.clone(), wanted.clone())?;
            }
            _ => merged.push(wanted.clone()),
        }
    }
    Ok(arrange(merged, &patch, &before, Some(key)))
}

/// Follows `$patch` among the items: answers the live items and the patch items that are left.
fn special_items(
    mut old: Vec<Value>,
    new: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), String> {
    let mut kept = Vec::new();
    let mut replace = false;
    for item in new {
        match item.get(DIRECTIVE).map(|directive| directive.as_str().unwrap_or_default()) {
            None => kept.push(item),
            Some("delete") => {
                let gone = item.get(key).ok_or_else(|| no_key(&item, key))?;
                old.retain(|item| item.get(key) != Some(gone));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err("merging lists cannot yet be specified in the patch".to_owned());
            }
            Some(other) => {
                return Err(format!("unknown patch type: {other} in map: {}", go(&item)));
            }
        }
    }
    Ok(if replace { (kept, Vec::new()) } else { (old, kept) })
}

fn no_key(item: &Value, key: &str) -> String {
    format!("map: {} does not contain declared merge key: {key}", go(item))
}

/// Orders merged items: those of the patch by `order`, the others by the live list, interleaved
/// by the live list where it knows both.
fn arrange(merged: Vec<Value>, order: &[Value], live: &[Value], key: Option<&str>) -> Vec<Value> {
    let index = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item, key));
    let (mut ours, mut theirs): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| index(order, item).is_some());
    ours.sort_by_key(|item| index(order, item));
    theirs.sort_by_key(|item| index(live, item));
    let mut sorted = Vec::new();
    let mut theirs = theirs.into_iter().peekable();
    for item in ours {
        while let Some(other) = theirs.peek() {
            match (index(live, other), index(live, &item)) {
                (Some(left), Some(right)) if left < right => sorted.extend(theirs.next()),
                _ => break,
            }
        }
        sorted.push(item);
    }
    sorted.extend(theirs);
    sorted
}

/// A value as Go prints it, for messages.
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
