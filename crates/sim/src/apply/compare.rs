//! What changed between two objects, as three sets of paths.

use std::collections::BTreeSet;

use serde_json::{Map as Object, Value};

use super::element::Element;
use super::fields::Fields;
use super::walk::{child, step};
use crate::schema::{List, Map, Relation, Schema, Shape};

/// The differences between two objects; no path is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Paths that only the old object has.
    pub(crate) removed: Fields,
    /// Paths that both have, with different values.
    pub(crate) modified: Fields,
    /// Paths that only the new object has.
    pub(crate) added: Fields,
}

impl Changes {
    /// Without the paths at or below those in `ignored`.
    pub(crate) fn without(&self, ignored: &Fields) -> Changes {
        Changes {
            removed: self.removed.without(ignored),
            modified: self.modified.without(ignored),
            added: self.added.without(ignored),
        }
    }
}

/// Compares two objects of one kind.
pub(crate) fn compare(schema: &Schema, old: &Value, new: &Value) -> Changes {
    let mut walk = Walk { path: Vec::new(), changes: Changes::default() };
    walk.pair(schema, Some(old), Some(new));
    walk.changes
}

struct Walk {
    path: Vec<Element>,
    changes: Changes,
}

impl Walk {
    fn pair(&mut self, schema: &Schema, old: Option<&Value>, new: Option<&Value>) {
        let before = schema.shape(old);
        let after = schema.shape(new);
        let leaf = if new.is_none() {
            self.shaped(before, old, new)
        } else if old.is_none() || before == after {
            self.shaped(after, old, new)
        } else {
            self.shaped(before, old, new);
            self.shaped(after, old, new)
        };
        if !leaf {
            match (old, new) {
                (None, Some(_)) => self.changes.added.insert(&self.path),
                (Some(_), None) => self.changes.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Compares by one shape; true if the value counts as a leaf.
    fn shaped(&mut self, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> bool {
        match shape {
            Shape::Scalar => self.leaf(old, new),
            Shape::Map(map) => {
                let (old_map, new_map) = (object(old), object(new));
                if map.atomic || (hollow(old_map) && hollow(new_map)) {
                    return self.leaf(old, new);
                }
                self.keys(map, old_map, new_map);
                false
            }
            Shape::List(list) => {
                let (old_items, new_items) = (items(old), items(new));
                if list.relation == Relation::Atomic
                    || (old_items.is_empty() && new_items.is_empty())
                {
                    return self.leaf(old, new);
                }
                self.items(list, old_items, new_items);
                false
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) -> bool {
        match (old, new) {
            (None, Some(_)) => self.changes.added.insert(&self.path),
            (Some(_), None) => self.changes.removed.insert(&self.path),
            (Some(old), Some(new)) if old != new => self.changes.modified.insert(&self.path),
            _ => {}
        }
        true
    }

    fn keys(
        &mut self,
        map: &Map,
        old: Option<&Object<String, Value>>,
        new: Option<&Object<String, Value>>,
    ) {
        let keys: BTreeSet<&String> =
            old.into_iter().chain(new).flat_map(|object| object.keys()).collect();
        for key in keys {
            self.path.push(Element::Field(key.clone()));
            let (old, new) = (old.and_then(|old| old.get(key)), new.and_then(|new| new.get(key)));
            self.pair(child(map, key), old, new);
            self.path.pop();
        }
    }

    fn items(&mut self, list: &List, old: &[Value], new: &[Value]) {
        let steps: BTreeSet<Element> =
            old.iter().chain(new).filter_map(|item| step(list, item)).collect();
        for here in steps {
            let of = |items: &'_ [Value]| -> Vec<Value> {
                items
                    .iter()
                    .filter(|item| step(list, item).as_ref() == Some(&here))
                    .cloned()
                    .collect()
            };
            let (old, new) = (of(old), of(new));
            self.path.push(here.clone());
            match (old.len(), new.len()) {
                (0 | 1, 0 | 1) => self.pair(&list.item, old.first(), new.first()),
                (2.., 2..) => {
                    if old != new {
                        self.changes.modified.insert(&self.path);
                    }
                }
                (2.., _) => {
                    if let Some(new) = new.first() {
                        self.pair(&list.item, None, Some(new));
                    }
                    self.changes.removed.insert(&self.path);
                }
                (_, 2..) => {
                    if let Some(old) = old.first() {
                        self.pair(&list.item, Some(old), None);
                    }
                    self.changes.added.insert(&self.path);
                }
            }
            self.path.pop();
        }
    }
}

fn object(value: Option<&Value>) -> Option<&Object<String, Value>> {
    value.and_then(Value::as_object)
}

fn hollow(object: Option<&Object<String, Value>>) -> bool {
    object.is_none_or(Object::is_empty)
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
