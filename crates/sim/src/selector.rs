//! Label and field selectors: parsing and matching.
//!
//! Works on any object; which fields a kind offers is asked of the kind.

use serde_json::Value;

use crate::kind::Kind;
use crate::status::Failure;

/// One requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    Greater(String, i64),
    Less(String, i64),
}

/// A parsed label selector; all requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<Requirement>);

impl Labels {
    /// Parses the query form, for example `app in (a,b),!old,tier=web`.
    ///
    /// # Errors
    /// 400 as the API server words it.
    pub fn parse(text: &str) -> Result<Labels, Failure> {
        let mut requirements = Vec::new();
        for part in split_outside_parentheses(text) {
            let part = part.trim();
            if part.is_empty() {
                continue;
            }
            let parsed = requirement(part).ok_or_else(|| {
                let open = part.ends_with(" in") || part.ends_with(" notin");
                let found = if open {
                    "found '' expected: '('".to_owned()
                } else {
                    format!("found '{part}', expected: in, notin, =, ==, !=, gt, lt")
                };
                Failure::bad_request(format!("unable to parse requirement: {found}"))
            })?;
            requirements.push(parsed);
        }
        Ok(Labels(requirements))
    }

    /// Whether the labels of `object` satisfy every requirement.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => {
                labels[key].as_str().is_some_and(|value| values.iter().any(|v| v == value))
            }
            Requirement::NotIn(key, values) => {
                labels[key].as_str().is_none_or(|value| values.iter().all(|v| v != value))
            }
            Requirement::Exists(key) => labels[key].is_string(),
            Requirement::Absent(key) => !labels[key].is_string(),
            Requirement::Greater(key, bound) => number(&labels[key]).is_some_and(|n| n > *bound),
            Requirement::Less(key, bound) => number(&labels[key]).is_some_and(|n| n < *bound),
        })
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn number(value: &Value) -> Option<i64> {
    value.as_str()?.parse().ok()
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn requirement(part: &str) -> Option<Requirement> {
    if let Some((head, list)) = part.split_once('(') {
        let values: Vec<String> =
            list.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
        let mut words = head.split_whitespace();
        let (key, operator) = (words.next()?.to_owned(), words.next()?);
        return match operator {
            "in" => Some(Requirement::In(key, values)),
            "notin" => Some(Requirement::NotIn(key, values)),
            _ => None,
        };
    }
    let trimmed = |text: &str| text.trim().to_owned();
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Requirement::NotIn(trimmed(key), vec![trimmed(value)]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Requirement::In(trimmed(key), vec![trimmed(value)]));
    }
    if let Some((key, value)) = part.split_once('>') {
        return Some(Requirement::Greater(trimmed(key), value.trim().parse().ok()?));
    }
    if let Some((key, value)) = part.split_once('<') {
        return Some(Requirement::Less(trimmed(key), value.trim().parse().ok()?));
    }
    match part.strip_prefix('!') {
        Some(key) => Some(Requirement::Absent(trimmed(key))),
        None if part.contains(char::is_whitespace) => None,
        None => Some(Requirement::Exists(part.to_owned())),
    }
}

/// A LabelSelector object in the query form, as `Scale.status.selector` shows it.
pub fn labels_text(selector: &Value) -> String {
    let mut parts = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push(format!("{key}={}", value.as_str().unwrap_or("")));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or("");
        let values: Vec<&str> = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let values = values.join(",");
        parts.push(match expression["operator"].as_str().unwrap_or("") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

/// A parsed field selector; all terms must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    path: String,
    value: String,
    equal: bool,
}

impl Fields {
    /// Parses the query form for a kind, for example `status.phase!=Running`.
    ///
    /// # Errors
    /// 400 for a field that the kind does not offer, or for bad syntax.
    pub fn parse(kind: &Kind, text: &str) -> Result<Fields, Failure> {
        let mut terms = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (path, value, equal) = match part.split_once("!=") {
                Some((path, value)) => (path, value, false),
                None => match part.split_once("==").or_else(|| part.split_once('=')) {
                    Some((path, value)) => (path, value, true),
                    None => {
                        return Err(Failure::bad_request(format!(
                            "invalid selector: '{part}'; can't understand '{part}'"
                        )));
                    }
                },
            };
            if !offered(kind, path) {
                return Err(Failure::bad_request(format!("field label not supported: {path}")));
            }
            terms.push(Term { path: path.into(), value: value.into(), equal });
        }
        Ok(Fields(terms))
    }

    /// Whether `object` satisfies every term.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|term| (field(object, &term.path) == term.value) == term.equal)
    }

    /// The one name that can match, if the selector says so.
    pub fn name(&self) -> Option<&str> {
        self.0
            .iter()
            .find(|term| term.equal && term.path == "metadata.name")
            .map(|term| term.value.as_str())
    }
}

fn field(object: &Value, path: &str) -> String {
    // The `source` of an Event is its component.
    let path = if path == "source" { "source.component" } else { path };
    let pointer = format!("/{}", path.trim_start_matches('.').replace('.', "/"));
    match object.pointer(&pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None if path == "spec.unschedulable" || path == "spec.hostNetwork" => {
            "false".to_owned()
        }
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Fields beside name and namespace that the built-in kinds offer.
const OFFERED: &[(&str, &[&str])] = &[
    (
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
    ),
    (
        "events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingComponent",
            "reportingController",
            "source",
            "type",
        ],
    ),
    ("secrets", &["type"]),
    ("nodes", &["spec.unschedulable"]),
    ("namespaces", &["status.phase"]),
    ("services", &["spec.clusterIP", "spec.type"]),
    ("replicasets", &["status.replicas"]),
    ("replicationcontrollers", &["status.replicas"]),
];

fn offered(kind: &Kind, path: &str) -> bool {
    if path == "metadata.name" || (path == "metadata.namespace" && kind.namespaced) {
        return true;
    }
    if kind.custom {
        return kind.selectable.iter().any(|known| known.trim_start_matches('.') == path);
    }
    OFFERED.iter().any(|(plural, paths)| *plural == kind.plural && paths.contains(&path))
}
