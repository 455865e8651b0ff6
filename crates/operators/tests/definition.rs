//! The custom resource definition, as it is installed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bounds;

use bounds::assert_bounded;
use kube_core::CustomResourceExt;
use operators::database::api::Database;
use operators::database::parameters::REFUSED;
use serde_json::{Value, json};

fn definition() -> Value {
    serde_json::to_value(Database::crd()).unwrap()
}

fn schema() -> Value {
    definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

#[test]
fn the_definition_is_as_recorded() {
    insta::assert_snapshot!("definition", serde_json::to_string_pretty(&definition()).unwrap());
}

/// Every wrong path is refused by its type, so that one answer lists them all (field case C-01).
#[test]
fn texts_are_texts() {
    let spec = &schema()["properties"]["spec"]["properties"];
    assert_eq!(spec["databaseName"]["type"], "string");
    assert_eq!(spec["username"]["type"], "string");
    assert_eq!(spec["parameters"]["additionalProperties"]["type"], "string");
}

#[test]
fn conditions_are_a_list_by_type() {
    let conditions = &schema()["properties"]["status"]["properties"]["conditions"];
    assert_eq!(conditions["x-kubernetes-list-type"], "map");
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
}

#[test]
fn the_rule_about_settings_names_them_all() {
    let rules =
        &schema()["properties"]["spec"]["properties"]["parameters"]["x-kubernetes-validations"];
    let rule = rules[0]["rule"].as_str().unwrap();
    for refused in REFUSED {
        assert!(rule.contains(&format!("'{}'", refused.name)), "{} is missing", refused.name);
    }
}

/// Unbounded texts and lists would exceed the cost that a server allows for rules.
#[test]
fn everything_in_the_spec_is_bounded() {
    assert_bounded("spec", &schema()["properties"]["spec"]);
}

/// Every rule says how to get out.
#[test]
fn rules_have_messages() {
    fn walk(schema: &Value) {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            assert!(rule["message"].as_str().is_some_and(|m| m.len() > 20), "{rule}");
        }
        for below in schema["properties"].as_object().into_iter().flatten().map(|(_, v)| v) {
            walk(below);
        }
        if let Some(items) = schema.get("items") {
            walk(items);
        }
    }
    walk(&schema());
}

/// Formats that a server does not know make it warn at every install.
#[test]
fn formats_are_known() {
    let text = definition().to_string();
    assert!(!text.contains("uint"), "unsigned formats are unknown to Kubernetes");
}
