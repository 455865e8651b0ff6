//! What becomes of each child, from its first state to its last.
//!
//! What Kubernetes' own controllers make on the way (pods of a set, their claims) is told with the
//! pods and the storage; what the controller then writes on it is a part of its making.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::change::{self, Change};
use crate::course::Course;
use crate::happening::{Happening, Wrote};
use crate::words::named;
use crate::workload::What;

/// What becomes of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// It is created.
    Create,
    /// Fields of it change.
    Change,
    /// It is deleted.
    Delete,
    /// It is not touched now, for a reason.
    Hold,
    /// It is as it should be.
    Unchanged,
}

/// A child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    /// What becomes of it.
    pub fate: Fate,
    /// `Kind/namespace/name`.
    pub name: String,
    /// Why, in the controller's words.
    pub why: String,
    /// What differs. Empty for a child that is created.
    pub fields: Vec<Change>,
    /// Keys whose values the operator makes up; they are never shown.
    pub generated: Vec<String>,
    /// Whether it is deleted on the way and made again under its name; what it owns may stay.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub made_again: bool,
}

/// All children: those that are touched first.
pub fn all(course: &Course) -> Vec<Child> {
    let stage = &course.stage;
    let mut written: BTreeMap<String, Vec<&Wrote>> = BTreeMap::new();
    let mut order = Vec::new();
    let mut made = BTreeSet::new();
    for happening in &stage.log {
        if let Happening::Moved(moved) = happening
            && moved.what == What::Made
        {
            made.insert(&moved.id);
        }
        if let Happening::Wrote(wrote) = happening
            && !made.contains(&wrote.id)
        {
            let name = named(&wrote.id);
            if !written.contains_key(&name) {
                order.push(name.clone());
            }
            written.entry(name).or_default().push(wrote);
        }
    }
    let mut children: Vec<Child> = order.iter().map(|name| child(name, &written[name])).collect();
    for note in &course.notes {
        let Some(id) = &note.about else { continue };
        let name = named(id);
        if children.iter().all(|child| child.name != name) && *id != stage.resource() {
            let why = format!("{}: {}", note.reason.name, note.message);
            children.push(Child { fate: Fate::Hold, name, why, ..nothing() });
        }
    }
    for (id, _) in stage.world.all() {
        let name = named(id);
        let made = matches!(id.kind.kind, "Pod" | "PersistentVolumeClaim");
        if !made && children.iter().all(|child| child.name != name) {
            children.push(Child { fate: Fate::Unchanged, name, ..nothing() });
        }
    }
    children.sort_by_key(|child| child.fate == Fate::Unchanged);
    children
}

/// Children of a paused resource: what would become of each is held.
pub(crate) fn held(children: Vec<Child>) -> Vec<Child> {
    let hold = |child: Child| {
        let doing = match child.fate {
            Fate::Create => "it would be created",
            Fate::Change => "it would be changed",
            Fate::Delete => "it would be deleted",
            Fate::Hold | Fate::Unchanged => return child,
        };
        let why = if child.why.is_empty() { String::new() } else { format!(" ({})", child.why) };
        Child { fate: Fate::Hold, why: format!("{doing}{why}"), ..child }
    };
    children.into_iter().map(hold).collect()
}

fn nothing() -> Child {
    Child {
        fate: Fate::Unchanged,
        name: String::new(),
        why: String::new(),
        fields: Vec::new(),
        generated: Vec::new(),
        made_again: false,
    }
}

/// A child from its first state to its last.
fn child(name: &str, writes: &[&Wrote]) -> Child {
    let before = writes.first().and_then(|wrote| wrote.before.as_ref());
    let after = writes.last().and_then(|wrote| wrote.after.as_ref());
    let kind = writes.first().map_or("", |wrote| wrote.id.kind.kind);
    let fields = match (before, after) {
        (Some(before), Some(after)) => change::between(kind, &before.value, &after.value),
        _ => Vec::new(),
    };
    let fate = match (before, after) {
        (None, _) => Fate::Create,
        (Some(_), None) => Fate::Delete,
        (Some(_), Some(_)) => Fate::Change,
    };
    Child {
        fate,
        name: name.to_owned(),
        why: writes.first().map(|wrote| wrote.why.clone()).unwrap_or_default(),
        fields,
        generated: writes.first().map(|wrote| wrote.generated.clone()).unwrap_or_default(),
        made_again: after.is_some() && writes.iter().any(|wrote| wrote.after.is_none()),
    }
}
