//! The comparison against what a real kube-apiserver 1.36 stored.
//!
//! `fixtures/stored-1.36.json` holds pairs of a declaration and the object that the server kept
//! after it was applied and another manager had added a label and an annotation. The declarations
//! are written in spellings that the server changes, and with empty values that it drops.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use phased::Live;
use phased::compare::difference;
use phased::ownership::holder;
use serde_json::{Value, json};

fn pairs() -> Vec<(Value, Value)> {
    let text = include_str!("fixtures/stored-1.36.json");
    let pairs: Vec<Value> = serde_json::from_str(text).expect("the fixture is JSON");
    pairs.into_iter().map(|mut pair| (pair["wanted"].take(), pair["live"].take())).collect()
}

fn name(object: &Value) -> String {
    format!("{} {}", object["kind"], object["metadata"]["name"])
}

/// Pointers to every plain value below `value`.
fn leaves(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, below) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                leaves(below, &format!("{pointer}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (place, below) in items.iter().enumerate() {
                leaves(below, &format!("{pointer}/{place}"), found);
            }
        }
        _ => found.push(pointer.to_owned()),
    }
}

/// Another value of the same type.
fn other(value: &Value) -> Value {
    match value {
        Value::Bool(value) => json!(!value),
        Value::Number(number) => json!(number.as_f64().unwrap_or_default() + 1.0),
        Value::String(text) if text.parse::<phased::quantity::Quantity>().is_ok() => json!("77"),
        Value::String(text) => json!(format!("{text}-other")),
        _ => json!("other"),
    }
}

#[test]
fn what_the_server_stored_is_no_difference() {
    assert_eq!(pairs().len(), 17);
    for (wanted, live) in pairs() {
        let found = difference(&wanted, &live).map(|path| path.spelled(&live));
        assert_eq!(found, None, "{}", name(&wanted));
    }
}

#[test]
fn any_other_declared_value_is_a_difference() {
    for (wanted, live) in pairs() {
        let mut pointers = Vec::new();
        leaves(&wanted, "", &mut pointers);
        for pointer in pointers {
            let mut changed = wanted.clone();
            let leaf = changed.pointer_mut(&pointer).unwrap_or_else(|| panic!("{pointer} exists"));
            if leaf.is_null() || pointer == "/apiVersion" || pointer == "/kind" {
                continue;
            }
            *leaf = other(leaf);
            let found = difference(&changed, &live);
            assert!(
                found.is_some(),
                "{} {pointer} to {:?}",
                name(&wanted),
                changed.pointer(&pointer)
            );
        }
    }
}

#[test]
fn any_stored_value_that_somebody_removes_is_a_difference() {
    for (wanted, live) in pairs() {
        let mut pointers = Vec::new();
        leaves(&wanted, "", &mut pointers);
        for pointer in pointers {
            let Some((parent, key)) = pointer.rsplit_once('/') else { continue };
            let declared = wanted.pointer(&pointer).cloned().unwrap_or_default();
            // Zero values may be dropped by the server; places in lists need not be the same.
            let is_zero = [json!(null), json!(""), json!(false), json!(0)].contains(&declared);
            let is_type = pointer == "/apiVersion" || pointer == "/kind";
            if is_zero || is_type || key.parse::<usize>().is_ok() {
                continue;
            }
            let mut robbed = live.clone();
            let Some(Value::Object(holder)) = robbed.pointer_mut(parent) else { continue };
            if holder.remove(&key.replace("~1", "/").replace("~0", "~")).is_none() {
                continue;
            }
            let found = difference(&wanted, &robbed);
            assert!(found.is_some(), "{} lost {pointer}", name(&wanted));
        }
    }
}

/// `fixtures/meddled-1.36.json`: the same declarations, applied by `steadfast/test`, and what the
/// server stored after `meddler` had patched one declared field (the patch is beside them).
#[test]
fn whoever_changed_a_declared_field_is_named() {
    let text = include_str!("fixtures/meddled-1.36.json");
    let cases: Vec<Value> = serde_json::from_str(text).expect("the fixture is JSON");
    assert_eq!(cases.len(), 17);
    let mut seen = Vec::new();
    for mut case in cases {
        let live = Live::new(case["live"].take()).expect("metadata");
        let field = difference(&case["wanted"], &live.value)
            .unwrap_or_else(|| panic!("{} makes no difference", case["patch"]));
        let manager = holder(&live, &field, "steadfast/test");
        seen.push((field.spelled(&live.value), manager));
    }
    let listed: Vec<String> = seen
        .iter()
        .map(|(field, manager)| format!("{field} {}", manager.as_deref().unwrap_or("nobody")))
        .collect();
    insta::assert_snapshot!(listed.join("\n"), @r#"
    .spec.template.spec.containers[name=server].image meddler
    .spec.template.spec.containers[name=server].env[name=A].value meddler
    .spec.template.spec.tolerations[{"effect":"","key":"spot","operator":"Exists"}] meddler
    .spec.replicas meddler
    .metadata.labels.app meddler
    .spec.template.spec.containers[name=server].resources.limits.cpu meddler
    .spec.ports[port=5432,protocol=TCP].targetPort meddler
    .spec.selector.more meddler
    .data.a meddler
    .rules[0].verbs meddler
    .spec.ingress[0].ports[0].port meddler
    .spec.strategy.rollingUpdate.maxSurge meddler
    .spec.template.spec.containers[name=server].ports[containerPort=5432,protocol=UDP].name meddler
    .automountServiceAccountToken meddler
    .spec.maxUnavailable meddler
    .spec.template.spec.containers[name=server].env[name=B] nobody
    .spec.template.spec.initContainers[name=prepare].command[1] meddler
    "#);
}
