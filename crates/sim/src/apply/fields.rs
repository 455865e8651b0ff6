//! Sets of field paths: the algebra of ownership and its `fieldsV1` encoding.
//!
//! A path in the set says nothing about its parents or children; whether those belong to it is
//! decided by the caller.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::Element;
use crate::schema::{Schema, Shape};

/// A set of field paths, as a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// Steps at which a path of the set ends.
    members: BTreeSet<Element>,
    /// Steps below which there are more paths; never holds an empty set.
    children: BTreeMap<Element, Fields>,
}

impl Fields {
    /// Adds a path; the empty path is not tracked.
    pub(crate) fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Whether the path of this one step is in the set.
    pub(crate) fn has(&self, step: &Element) -> bool {
        self.members.contains(step)
    }

    /// The paths that start with `step`, without it.
    pub(crate) fn below(&self, step: &Element) -> Option<&Fields> {
        self.children.get(step)
    }

    /// Paths in either set.
    pub(crate) fn union(&self, other: &Fields) -> Fields {
        let mut both = self.clone();
        both.members.extend(other.members.iter().cloned());
        for (step, theirs) in &other.children {
            let ours = both.children.entry(step.clone()).or_default();
            *ours = ours.union(theirs);
        }
        both
    }

    /// Paths in both sets.
    pub(crate) fn intersection(&self, other: &Fields) -> Fields {
        let members = self.members.intersection(&other.members).cloned().collect();
        self.rebuild(members, |step, ours| {
            other
                .children
                .get(step)
                .map_or_else(Fields::default, |theirs| ours.intersection(theirs))
        })
    }

    /// Paths of this set that are not in the other one.
    pub(crate) fn difference(&self, other: &Fields) -> Fields {
        let members = self.members.difference(&other.members).cloned().collect();
        self.rebuild(members, |step, ours| {
            other.children.get(step).map_or_else(|| ours.clone(), |theirs| ours.difference(theirs))
        })
    }

    /// Paths of this set that are neither in the other one nor below one of its paths.
    pub(crate) fn without(&self, other: &Fields) -> Fields {
        let members = self.members.difference(&other.members).cloned().collect();
        self.rebuild(members, |step, ours| {
            if other.members.contains(step) {
                return Fields::default();
            }
            other.children.get(step).map_or_else(|| ours.clone(), |theirs| ours.without(theirs))
        })
    }

    fn rebuild(
        &self,
        members: BTreeSet<Element>,
        child: impl Fn(&Element, &Fields) -> Fields,
    ) -> Fields {
        let children = self
            .children
            .iter()
            .map(|(step, ours)| (step.clone(), child(step, ours)))
            .filter(|(_, kept)| !kept.is_empty())
            .collect();
        Fields { members, children }
    }

    /// The set with every declared struct field above one of its paths added: `a.b.c` brings `a`
    /// if `a` is a field, but not the key of a map.
    pub(crate) fn with_parents(&self, schema: &Schema) -> Fields {
        let mut members = self.members.clone();
        let mut children = BTreeMap::new();
        let shape = schema.shape(None);
        for (step, below) in &self.children {
            let child = match (step, shape) {
                (Element::Field(name), Shape::Map(map)) => {
                    if map.fields.contains_key(name) {
                        members.insert(step.clone());
                    }
                    map.child(name)
                }
                (_, Shape::List(list)) => Some(&*list.item),
                _ => None,
            };
            children.insert(step.clone(), below.with_parents(child.unwrap_or(&Schema::Any)));
        }
        Fields { members, children }
    }

    /// Every path, parents before children, as messages list them.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, prefix: &str, paths: &mut Vec<String>) {
        paths.extend(self.members.iter().map(|step| format!("{prefix}{step}")));
        for (step, below) in &self.children {
            below.collect(&format!("{prefix}{step}"), paths);
        }
    }

    /// As `managedFields[].fieldsV1`.
    pub(crate) fn encode(&self) -> Value {
        let mut encoded = Map::new();
        for step in &self.members {
            encoded.insert(step.encode(), Value::Object(Map::new()));
        }
        for (step, below) in &self.children {
            let mut inner = below.encode();
            if self.members.contains(step)
                && let Value::Object(inner) = &mut inner
            {
                inner.insert(".".to_owned(), Value::Object(Map::new()));
            }
            encoded.insert(step.encode(), inner);
        }
        Value::Object(encoded)
    }

    /// Reads `managedFields[].fieldsV1`; none if it cannot be read.
    pub(crate) fn decode(encoded: &Value) -> Option<Fields> {
        let mut fields = Fields::default();
        for (key, below) in encoded.as_object()? {
            if key == "." {
                continue;
            }
            let step = Element::decode(key)?;
            let object = below.as_object()?;
            if object.is_empty() || object.contains_key(".") {
                fields.members.insert(step.clone());
            }
            let inner = Fields::decode(below)?;
            if !inner.is_empty() {
                fields.children.insert(step, inner);
            }
        }
        Some(fields)
    }
}

/// A set from the names of fields, one path each.
pub(crate) fn of(paths: &[&[&str]]) -> Fields {
    let mut fields = Fields::default();
    for path in paths {
        let steps: Vec<Element> =
            path.iter().map(|name| Element::Field((*name).to_owned())).collect();
        fields.insert(&steps);
    }
    fields
}
