//! Defaults and stored forms against what kube-apiserver 1.36.3 answered.
//!
//! `recorded.json` holds pairs of what was sent (as a dry-run create) and what came back, without
//! the server's own metadata.

use serde_json::Value;

use super::*;
use crate::kind::Kinds;

fn recorded() -> Vec<Value> {
    serde_json::from_str(include_str!("recorded.json")).expect("a list of pairs")
}

fn refused() -> Value {
    serde_json::from_str(include_str!("refused.json")).expect("a recording")
}

fn list<'a>(recorded: &'a Value, field: &str) -> &'a [Value] {
    recorded[field].as_array().map_or(&[], Vec::as_slice)
}

/// The object as it is when it is validated.
fn completed(kinds: &Kinds, sent: &Value) -> (std::sync::Arc<Kind>, Value) {
    let text = |field: &str| sent[field].as_str().unwrap_or_default().to_owned();
    let kind = kinds.by_kind(&text("apiVersion"), &text("kind")).expect("a kind of the table");
    let mut object = sent.clone();
    default(&kind, &mut object);
    normalize(&kind, &mut object);
    plugins(&kind, &mut object);
    (kind, object)
}

/// Causes as comparable lines, without the differences of Go structs that the server appends.
fn lines(causes: impl Iterator<Item = [String; 3]>) -> Vec<String> {
    let mut lines: Vec<String> = causes
        .map(|[reason, field, message]| {
            let head = message.lines().next().unwrap_or_default().to_owned();
            format!("{reason} {field}: {head}")
        })
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

fn ours(causes: &[Cause]) -> Vec<String> {
    lines(
        causes
            .iter()
            .map(|cause| [cause.reason.to_owned(), cause.field.clone(), cause.message.clone()]),
    )
}

fn theirs(answer: &Value) -> Vec<String> {
    lines(list(answer, "causes").iter().map(|cause| {
        ["reason", "field", "message"]
            .map(|field| cause[field].as_str().unwrap_or_default().to_owned())
    }))
}

/// Rules of the server that this crate knowingly does not have: policy of a cluster, kernel
/// settings, huge pages, and the second cause for a generated name.
fn beyond(answer: &Value) -> bool {
    let text = answer.to_string();
    ["disallowed by cluster policy", "sysctls", "HugePages", "generateName", "hugepages"]
        .iter()
        .any(|word| text.contains(word))
}

#[test]
fn bad_objects_are_refused_as_recorded() {
    let kinds = Kinds::default();
    let mut differences = Vec::new();
    for answer in list(&refused(), "creates").iter().filter(|answer| !beyond(answer)) {
        let (kind, object) = completed(&kinds, &answer["sent"]);
        let (ours, theirs) = (ours(&validate(&kind, &object, None)), theirs(answer));
        if ours != theirs {
            differences.push(format!("{}\n  ours   {ours:?}\n  theirs {theirs:?}", answer["sent"]));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn forbidden_updates_are_refused_as_recorded() {
    let kinds = Kinds::default();
    let mut differences = Vec::new();
    for answer in list(&refused(), "updates") {
        let (kind, object) = completed(&kinds, &answer["sent"]);
        let (_, old) = completed(&kinds, &answer["old"]);
        let (ours, theirs) = (ours(&validate(&kind, &object, Some(&old))), theirs(answer));
        if ours != theirs {
            differences.push(format!("{}\n  ours   {ours:?}\n  theirs {theirs:?}", answer["sent"]));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn good_objects_pass() {
    let kinds = Kinds::default();
    for pair in recorded() {
        let (kind, object) = completed(&kinds, &pair["sent"]);
        assert_eq!(ours(&validate(&kind, &object, None)), Vec::<String>::new(), "{}", pair["sent"]);
    }
}

/// Every difference between two values, one line each.
fn differences(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let null = Value::Null;
                let (a, b) = (a.get(key), b.get(key));
                if a.is_none() || b.is_none() {
                    found.push(format!("{path}.{key}: ours {a:?}, theirs {b:?}"));
                } else {
                    differences(
                        &format!("{path}.{key}"),
                        a.unwrap_or(&null),
                        b.unwrap_or(&null),
                        found,
                    );
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{index}]"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}: ours {a}, theirs {b}")),
    }
}

#[test]
fn objects_are_stored_as_the_server_stores_them() {
    let kinds = Kinds::default();
    let mut found = Vec::new();
    for pair in recorded() {
        let sent = &pair["sent"];
        let text = |field: &str| sent[field].as_str().unwrap_or_default().to_owned();
        let (version, name) = (text("apiVersion"), text("kind"));
        let kind = kinds.by_kind(&version, &name).expect("a kind of the table");
        let mut object = sent.clone();
        default(&kind, &mut object);
        normalize(&kind, &mut object);
        plugins(&kind, &mut object);
        let mut again = object.clone();
        default(&kind, &mut again);
        normalize(&kind, &mut again);
        plugins(&kind, &mut again);
        assert_eq!(again, object, "twice is once for {name}");
        let mut stored = pair["stored"].clone();
        // Status is reset and labels of namespaces are added by the verbs.
        for object in [&mut object, &mut stored] {
            if let Some(map) = object.as_object_mut() {
                map.remove("status");
            }
            // Added by admission plugins on create: protection of storage, taints of new nodes.
            if name.starts_with("PersistentVolume") {
                object["metadata"]["finalizers"] = Value::Null;
            }
            if name == "Node" {
                object["spec"]["taints"] = Value::Null;
            }
            if name == "Namespace" || name == "CustomResourceDefinition" {
                object["metadata"] = Value::Null;
                object["spec"]["finalizers"] = Value::Null;
            }
        }
        let label = format!("{name}/{}", sent["metadata"]["name"].as_str().unwrap_or_default());
        differences(&label, &object, &stored, &mut found);
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}
