//! Unbounded texts and lists would exceed the cost that a server allows for rules.

#![allow(unreachable_pub, reason = "a module of tests is nobody's interface")]

use serde_json::Value;

/// Fails for a part of the schema that has no bound; `path` is that of the schema.
pub fn assert_bounded(path: &str, schema: &Value) {
    let free = schema.get("x-kubernetes-int-or-string").is_some() || schema.get("enum").is_some();
    match schema["type"].as_str() {
        Some("string") if !free => assert!(schema.get("maxLength").is_some(), "{path}"),
        Some("array") => assert!(schema.get("maxItems").is_some(), "{path}"),
        Some("integer") => assert!(schema.get("maximum").is_some(), "{path}"),
        _ => {}
    }
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        assert_bounded(&format!("{path}.{name}"), below);
    }
    if let Some(items) = schema.get("items") {
        assert_bounded(&format!("{path}[]"), items);
    }
    if let Some(values) = schema.get("additionalProperties") {
        assert!(schema.get("maxProperties").is_some(), "{path}");
        assert_bounded(&format!("{path}{{}}"), values);
    }
}
