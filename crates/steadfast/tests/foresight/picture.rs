//! What is compared of an edit: what was said of it, and what came of it.

use std::collections::{BTreeMap, BTreeSet};

use foresight::change;
use foresight::child::{Child, Fate};
use foresight::forecast::{Forecast, Outcome};
use serde_json::Value;

/// Kinds of children; pods are compared by their going.
pub(crate) const KINDS: [&str; 6] = [
    "StatefulSet",
    "Service",
    "PodDisruptionBudget",
    "ConfigMap",
    "Secret",
    "PersistentVolumeClaim",
];
/// What is compared.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Picture {
    pub(crate) refused: bool,
    pub(crate) children: BTreeSet<String>,
    pub(crate) pods: Vec<String>,
    pub(crate) phases: Vec<String>,
}

/// What a forecast says, in the terms of the comparison.
pub(crate) fn foretold(forecast: &Forecast) -> Picture {
    let refused = forecast.outcome == Outcome::Refused;
    if refused && forecast.end.is_none() {
        return Picture { refused, ..Picture::default() };
    }
    let made = forecast.storage.iter().filter(|one| one.what.starts_with("made"));
    let mut children: BTreeSet<String> =
        made.flat_map(|one| &one.claims).map(|claim| format!("{claim} is made")).collect();
    let compared = |child: &&Child| KINDS.iter().any(|kind| child.name.starts_with(kind));
    for child in forecast.children.iter().filter(compared) {
        if child.made_again {
            children.insert(format!("{} is made again", child.name));
        }
        match child.fate {
            Fate::Create => drop(children.insert(format!("{} is made", child.name))),
            Fate::Delete => drop(children.insert(format!("{} goes", child.name))),
            Fate::Change => children.extend(child.fields.iter().map(|c| line(&child.name, c))),
            Fate::Hold | Fate::Unchanged => {}
        }
    }
    let restarted = forecast.pods.iter().filter(|one| one.what != "start");
    Picture {
        refused,
        children,
        pods: restarted.flat_map(|one| one.pods.clone()).collect(),
        phases: forecast.phases.iter().map(|one| one.phase.clone()).collect(),
    }
}

/// Children by name, with their kinds.
pub(crate) type Objects = BTreeMap<String, (String, Value)>;

/// How children differ, a line a field.
pub(crate) fn differences(before: &Objects, after: &Objects) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, (kind, new)) in after {
        match before.get(name) {
            Some((_, old)) => {
                if old["metadata"]["uid"] != new["metadata"]["uid"] {
                    found.insert(format!("{name} is made again"));
                }
                found.extend(change::between(kind, old, new).iter().map(|c| line(name, c)));
            }
            None => drop(found.insert(format!("{name} is made"))),
        }
    }
    found.extend(before.keys().filter(|n| !after.contains_key(*n)).map(|n| format!("{n} goes")));
    found
}

fn line(name: &str, change: &change::Change) -> String {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    format!("{name} {}: {} > {}", change.field, shown(&change.old), shown(&change.new))
}
