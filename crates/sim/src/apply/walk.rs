//! Walks of one value by its schema: which paths it sets, and the value without some of them.

use serde_json::{Map as Object, Value};

use super::element::{Element, Single};
use super::fields::Fields;
use crate::schema::{List, Map, Relation, Schema, Shape};

/// The step that names a list item; none where an item has none of its key fields or no usable
/// value, which the server refuses.
pub(crate) fn step(list: &List, item: &Value) -> Option<Element> {
    match &list.relation {
        Relation::Atomic => None,
        Relation::Set => match item {
            Value::Object(_) | Value::Array(_) | Value::Null => None,
            single => Some(Element::Item(Single(single.clone()))),
        },
        Relation::Keys(names) => {
            let object = item.as_object()?;
            let mut keys: Vec<(String, Single)> = names
                .iter()
                .filter_map(|name| {
                    let value = object.get(name).cloned().or_else(|| key_default(list, name))?;
                    Some((name.clone(), Single(value)))
                })
                .collect();
            keys.sort();
            (!keys.is_empty()).then_some(Element::Keys(keys))
        }
    }
}

fn key_default(list: &List, name: &str) -> Option<Value> {
    match list.item.resolve() {
        Schema::Map(map) => map.fields.get(name)?.default.clone(),
        _ => None,
    }
}

/// The schema of what lies under `key`; open where the schema does not know the key.
pub(crate) fn child<'a>(map: &'a Map, key: &str) -> &'a Schema {
    map.child(key).unwrap_or(&Schema::Any)
}

/// Every path that `value` sets.
pub(crate) fn fields(schema: &Schema, value: &Value) -> Fields {
    let mut set = Fields::default();
    collect(schema, value, &mut Vec::new(), &mut set);
    set
}

fn collect(schema: &Schema, value: &Value, path: &mut Vec<Element>, set: &mut Fields) {
    match (schema.shape(Some(value)), value) {
        (Shape::Map(map), _) if map.atomic => set.insert(path),
        (Shape::Map(map), Value::Object(object)) => {
            for (key, value) in object {
                path.push(Element::Field(key.clone()));
                collect(child(map, key), value, path, set);
                let hollow = value.is_null() || value.as_object().is_some_and(Object::is_empty);
                if hollow || !map.fields.contains_key(key) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        (Shape::List(list), _) if list.relation == Relation::Atomic => set.insert(path),
        (Shape::List(list), Value::Array(items)) => collect_items(list, items, path, set),
        (Shape::Scalar, _) => set.insert(path),
        _ => {}
    }
}

fn collect_items(list: &List, items: &[Value], path: &mut Vec<Element>, set: &mut Fields) {
    let steps: Vec<Option<Element>> = items.iter().map(|item| step(list, item)).collect();
    for (index, item) in items.iter().enumerate() {
        let Some(here) = &steps[index] else { continue };
        let twice = steps.iter().filter(|other| other.as_ref() == Some(here)).count() > 1;
        path.push(here.clone());
        if !twice {
            collect(&list.item, item, path, set);
        }
        set.insert(path);
        path.pop();
    }
}

/// `value` without the paths in `gone` and all that lies below them. What becomes empty by it
/// becomes null, as on the server.
pub(crate) fn remove(schema: &Schema, value: &Value, gone: &Fields) -> Value {
    match (schema.shape(Some(value)), value) {
        (Shape::Map(map), Value::Object(object)) if !map.atomic => {
            let mut kept = Object::new();
            for (key, value) in object {
                let here = Element::Field(key.clone());
                if gone.has(&here) {
                    continue;
                }
                let value = match gone.below(&here) {
                    Some(below) => remove(child(map, key), value, below),
                    None => value.clone(),
                };
                kept.insert(key.clone(), value);
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Shape::List(list), Value::Array(items)) if list.relation != Relation::Atomic => {
            let kept: Vec<Value> = items
                .iter()
                .filter_map(|item| {
                    let Some(here) = step(list, item) else { return Some(item.clone()) };
                    if gone.has(&here) {
                        return None;
                    }
                    Some(match gone.below(&here) {
                        Some(below) => remove(&list.item, item, below),
                        None => item.clone(),
                    })
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (Shape::Scalar, value) => value.clone(),
        _ => Value::Null,
    }
}
