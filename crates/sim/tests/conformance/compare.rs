//! Where two transcripts differ, and which of these differences are known.
//!
//! A known difference that no longer shows is an error too: the list must not outlive its reasons.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::exchange::Answer;
use super::scenario::folder;

/// One place where an answer of the simulator is not the real server's.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    /// Scenario, step and JSON pointer (below `code`, `media`, `warnings` or `body`).
    pub(crate) scenario: String,
    /// The step.
    pub(crate) step: String,
    /// The pointer.
    pub(crate) path: String,
    /// What the real server says.
    pub(crate) real: Value,
    /// What the simulator says.
    pub(crate) sim: Value,
}

/// Differences of one kind, as the README lists them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    /// The sentence that the README has too.
    pub(crate) difference: String,
    /// Where it shows.
    pub(crate) at: Vec<Place>,
}

/// Where a known difference shows.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    /// Scenario; `*` stands for every one.
    pub(crate) scenario: String,
    /// Step; `*` stands for every one.
    pub(crate) step: String,
    /// Beginning of the pointer; a segment `*` stands for any one.
    pub(crate) path: String,
}

impl Place {
    fn covers(&self, difference: &Difference) -> bool {
        let same = |pattern: &str, text: &str| pattern == "*" || pattern == text;
        let mut segments = difference.path.split('/');
        same(&self.scenario, &difference.scenario)
            && same(&self.step, &difference.step)
            && self
                .path
                .split('/')
                .all(|pattern| segments.next().is_some_and(|text| same(pattern, text)))
    }
}

/// The known differences.
pub(crate) fn known() -> Result<Vec<Known>> {
    let text = std::fs::read_to_string(folder().join("known.yaml")).context("read known.yaml")?;
    serde_saphyr::from_str(&text).context("understand known.yaml")
}

/// Every difference between two transcripts of one scenario.
pub(crate) fn differences(scenario: &str, real: &[Answer], sim: &[Answer]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (real, sim) in real.iter().zip(sim) {
        if real.code != sim.code {
            // One is an object and the other an error: nothing in them can be compared.
            found.push(refused(scenario, real, sim));
            continue;
        }
        let mut seen = Vec::new();
        let value = |answer: &Answer| serde_json::to_value(answer).unwrap_or_default();
        walk(&value(real), &value(sim), String::new(), &mut seen);
        found.extend(seen.into_iter().map(|(path, one, other)| Difference {
            scenario: scenario.to_owned(),
            step: real.step.clone(),
            path: path.trim_start_matches('/').to_owned(),
            real: one,
            sim: other,
        }));
    }
    if real.len() != sim.len() {
        found.push(Difference {
            scenario: scenario.to_owned(),
            step: String::new(),
            path: "steps".to_owned(),
            real: real.len().into(),
            sim: sim.len().into(),
        });
    }
    found
}

fn refused(scenario: &str, real: &Answer, sim: &Answer) -> Difference {
    let summary = |answer: &Answer| Value::from(format!("{}: {}", answer.code, answer.body));
    Difference {
        scenario: scenario.to_owned(),
        step: real.step.clone(),
        path: "code".to_owned(),
        real: summary(real),
        sim: summary(sim),
    }
}

fn walk(real: &Value, sim: &Value, path: String, found: &mut Vec<(String, Value, Value)>) {
    match (real, sim) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let null = Value::Null;
                let segment = name.replace('~', "~0").replace('/', "~1");
                let (one, other) =
                    (one.get(name).unwrap_or(&null), other.get(name).unwrap_or(&null));
                walk(one, other, format!("{path}/{segment}"), found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                walk(one, other, format!("{path}/{at}"), found);
            }
        }
        (one, other) if one != other => found.push((path, one.clone(), other.clone())),
        _ => {}
    }
}

/// Splits what is known off; answers the rest, and the places that cover nothing.
pub(crate) fn judge(found: Vec<Difference>, known: &[Known]) -> (Vec<Difference>, Vec<Place>) {
    let places = || known.iter().flat_map(|one| &one.at);
    let outdated = places().filter(|place| !found.iter().any(|one| place.covers(one)));
    let outdated = outdated.cloned().collect();
    let unknown = found.into_iter().filter(|one| !places().any(|place| place.covers(one)));
    (unknown.collect(), outdated)
}
