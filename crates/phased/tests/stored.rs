//! The comparison against what a real kube-apiserver 1.36 stored.
//!
//! `fixtures/stored-1.36.json` holds pairs of a declaration and the object that the server kept
//! after it was applied and another manager had added a label and an annotation. The declarations
//! are written in spellings that the server changes, and with empty values that it drops.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use phased::compare::difference;
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
