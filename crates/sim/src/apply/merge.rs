//! Merges an applied configuration into the live object.
//!
//! The configuration wins wherever it says something; ownership plays no part here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map as Object, Value};

use super::element::Element;
use super::walk::{child, step};
use crate::schema::{List, Map, Relation, Schema, Shape};

/// `live` with `config` merged over it.
pub(crate) fn merge(schema: &Schema, live: &Value, config: &Value) -> Value {
    pair(schema, Some(live), Some(config)).unwrap_or(Value::Null)
}

fn pair(schema: &Schema, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let shape = match config {
        Some(value) => schema.shape(Some(value)),
        None => schema.shape(live),
    };
    match shape {
        Shape::Scalar => leaf(live, config),
        Shape::Map(map) => {
            let (old, new) = (object(live), object(config));
            let hollow =
                |object: Option<&Object<String, Value>>| object.is_none_or(Object::is_empty);
            if map.atomic || (hollow(old) && hollow(new)) {
                return leaf(live, config);
            }
            keys(map, old, new)
        }
        Shape::List(list) => {
            let (old, new) = (items(live), items(config));
            if list.relation == Relation::Atomic || (old.is_empty() && new.is_empty()) {
                return leaf(live, config);
            }
            Some(Value::Array(Zipper::new(list, old, new).run()))
        }
    }
}

fn leaf(live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    config.or(live).cloned()
}

fn object(value: Option<&Value>) -> Option<&Object<String, Value>> {
    value.and_then(Value::as_object)
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn keys(
    map: &Map,
    live: Option<&Object<String, Value>>,
    config: Option<&Object<String, Value>>,
) -> Option<Value> {
    let names: BTreeSet<&String> =
        live.into_iter().chain(config).flat_map(|object| object.keys()).collect();
    let merged: Object<String, Value> = names
        .into_iter()
        .filter_map(|name| {
            let (old, new) = (live.and_then(|o| o.get(name)), config.and_then(|o| o.get(name)));
            Some((name.clone(), pair(child(map, name), old, new)?))
        })
        .collect();
    (!merged.is_empty()).then_some(Value::Object(merged))
}

/// Merges two keyed lists so that the order of the configuration holds among its own items and
/// the other live items stay where they were between them.
struct Zipper<'a> {
    list: &'a List,
    live: &'a [Value],
    live_steps: Vec<Element>,
    config_steps: Vec<Element>,
    /// The live item of a step; null where several share it.
    live_at: BTreeMap<Element, Value>,
    config_at: BTreeMap<Element, Value>,
    /// Steps that both lists have, in the order of the configuration, not yet reached.
    shared: std::collections::VecDeque<Element>,
    done: BTreeSet<Element>,
    out: Vec<Value>,
}

impl<'a> Zipper<'a> {
    fn new(list: &'a List, live: &'a [Value], config: &'a [Value]) -> Self {
        let (live_steps, live_at) = index(list, live);
        let (config_steps, config_at) = index(list, config);
        let shared =
            config_steps.iter().filter(|step| live_at.contains_key(step)).cloned().collect();
        Zipper {
            list,
            live,
            live_steps,
            config_steps,
            live_at,
            config_at,
            shared,
            done: BTreeSet::new(),
            out: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<Value> {
        let (mut left, mut right) = (0, 0);
        let mut next = self.shared.pop_front();
        while left < self.live_steps.len() || right < self.config_steps.len() {
            let ours = self.live_steps.get(left).cloned();
            let theirs = self.config_steps.get(right).cloned();
            if let (Some(ours), Some(theirs)) = (&ours, &theirs) {
                if ours == theirs {
                    self.both(ours);
                    left += 1;
                    right += 1;
                    next = self.shared.pop_front();
                    continue;
                }
                let waits = next.as_ref().is_some_and(|next| next != ours);
                if self.config_at.contains_key(ours) && waits {
                    left += 1;
                    continue;
                }
            }
            if let Some(ours) = ours {
                if !self.config_at.contains_key(&ours) {
                    let item = pair(&self.list.item, self.live.get(left), None);
                    self.out.extend(item);
                    left += 1;
                    continue;
                }
                if self.done.contains(&ours) {
                    left += 1;
                }
            }
            if let Some(theirs) = theirs {
                self.both(&theirs);
                right += 1;
                if next.as_ref() == Some(&theirs) {
                    next = self.shared.pop_front();
                }
            }
        }
        self.out
    }

    fn both(&mut self, step: &Element) {
        self.done.insert(step.clone());
        let item = pair(&self.list.item, self.live_at.get(step), self.config_at.get(step));
        self.out.extend(item);
    }
}

fn index(list: &List, items: &[Value]) -> (Vec<Element>, BTreeMap<Element, Value>) {
    let mut steps = Vec::new();
    let mut at = BTreeMap::new();
    for item in items {
        let Some(step) = step(list, item) else { continue };
        if at.insert(step.clone(), item.clone()).is_some() {
            at.insert(step.clone(), Value::Null);
        }
        steps.push(step);
    }
    (steps, at)
}
