//! The custom resource definition of ZookeeperCluster, and resources that the replaced operator
//! stored.

use operators::zookeeper::api::Written;
use operators::zookeeper::definition::definition;
use operators::zookeeper::valid;
use serde_json::{Value, json};

use crate::bounds::assert_bounded;

fn whole() -> Value {
    serde_json::to_value(definition()).unwrap()
}

fn version() -> Value {
    whole()["spec"]["versions"][0].clone()
}

#[test]
fn the_definition_is_as_recorded() {
    insta::assert_snapshot!("definition", serde_json::to_string_pretty(&whole()).unwrap());
}

/// The reference's section 1.1 and 1.2.
#[test]
fn identity_and_columns_are_the_replaced_operators() {
    let whole = whole();
    assert_eq!(whole["metadata"]["name"], "zookeeperclusters.zookeeper.pravega.io");
    assert_eq!(whole["spec"]["names"]["shortNames"], json!(["zk"]));
    let version = version();
    assert_eq!(version["name"], "v1beta1");
    assert_eq!(version["subresources"], json!({"status": {}}));
    let columns = version["additionalPrinterColumns"].as_array().unwrap();
    let shown: Vec<(&str, &str, &str)> = columns
        .iter()
        .map(|c| {
            let text = |key: &str| c[key].as_str().unwrap();
            (text("name"), text("type"), text("jsonPath"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("Replicas", "integer", ".spec.replicas"),
            ("Ready Replicas", "integer", ".status.readyReplicas"),
            ("Version", "string", ".status.currentVersion"),
            ("Desired Version", "string", ".spec.image.tag"),
            ("Internal Endpoint", "string", ".status.internalClientEndpoint"),
            ("External Endpoint", "string", ".status.externalClientEndpoint"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ]
    );
}

#[test]
fn nothing_is_required() {
    let schema = &version()["schema"]["openAPIV3Schema"];
    assert!(schema.get("required").is_none());
    assert!(schema["properties"]["spec"].get("required").is_none());
    for bare in [json!({}), json!({"spec": {}}), json!({"metadata": {"name": "zk"}})] {
        let written: Written = serde_json::from_value(bare).unwrap();
        let valid = valid::check("zk", &written).unwrap();
        assert_eq!((valid.replicas, valid.image_name().as_str()), (3, "pravega/zookeeper:0.2.15"));
    }
}

/// A stored resource with every default of the replaced operator filled in.
#[test]
fn a_resource_with_stored_defaults_is_read() {
    let text = include_str!("../fixtures/zookeeper-replaced.json");
    let stored: Value = serde_json::from_str(text).unwrap();
    let resource = &stored["resource"];
    let written: Written = serde_json::from_value(resource.clone()).unwrap();
    let again = serde_json::to_value(&written).unwrap();
    assert_eq!(again["spec"]["config"], resource["spec"]["config"]);
    assert_eq!(
        again["spec"]["probes"]["readinessProbe"],
        resource["spec"]["probes"]["readinessProbe"]
    );
    assert_eq!(again["spec"]["ports"], resource["spec"]["ports"]);
}

/// Every rule says how to get out, and every format is one that a server knows.
#[test]
fn rules_have_messages() {
    fn walk(schema: &Value) {
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            assert!(rule["message"].as_str().is_some_and(|m| m.len() > 20), "{rule}");
        }
        for below in schema["properties"].as_object().into_iter().flatten().map(|(_, v)| v) {
            walk(below);
        }
    }
    walk(&version()["schema"]["openAPIV3Schema"]);
    assert!(!whole().to_string().contains("uint"), "unsigned formats are unknown to Kubernetes");
}

/// Unbounded texts and lists would exceed the cost that a server allows for rules.
#[test]
fn everything_in_the_spec_is_bounded() {
    assert_bounded("spec", &version()["schema"]["openAPIV3Schema"]["properties"]["spec"]);
}
