//! Rendered children: snapshots of each, and golden digests of the pod template.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use check::{World, seed};
use phased::child::INTENT_ANNOTATION;
use phased::step::{CreateOnce, Step};
use serde_json::{Value, json};

/// A resource that uses every optional field.
fn rich() -> Value {
    let mut root = seed();
    root["metadata"]["name"] = json!("orders");
    root["metadata"]["namespace"] = json!("shop");
    root["spec"] = json!({
        "image": "registry.example.com:5000/db/pg:16",
        "databaseName": "Bestellungen_ä", "username": "shop-app",
        "storage": {"size": "20Gi", "storageClass": "fast"},
        "parameters": {"work_mem": "64MB", "search_path": "a\\b, 'c'", "log_line_prefix": "%m\t[%p]\n"},
        "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": 0.5, "memory": "512Mi"}},
        "podTemplate": {
            "labels": {"team": "shop", "app.kubernetes.io/name": "not-ours-to-change"},
            "annotations": {"note": "kept"},
            "nodeSelector": {"disk": "ssd"},
            "affinity": {"nodeAffinity": {}},
            "tolerations": [{"key": "db", "operator": "Exists"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway"}],
            "priorityClassName": "high",
            "imagePullSecrets": [{"name": "pull"}],
            "securityContext": {"runAsUser": 70, "fsGroup": 70},
            "serviceAccountName": "db",
        },
    });
    root
}

/// A primary with two standbys.
fn trio() -> Value {
    let mut root = seed();
    root["metadata"]["name"] = json!("trio");
    root["spec"]["replicas"] = json!(3);
    root
}

/// What bring-ups of the resources create, by name; made once a process.
fn created(case: &str) -> BTreeMap<String, Value> {
    static ALL: LazyLock<BTreeMap<&str, BTreeMap<String, Value>>> = LazyLock::new(|| {
        [("seed", create(seed())), ("rich", create(rich())), ("trio", create(trio()))].into()
    });
    ALL[case].clone()
}

const CASES: [&str; 3] = ["seed", "rich", "trio"];

fn create(root: Value) -> BTreeMap<String, Value> {
    let mut world = World::of(root);
    world.store(
        &phased::ObjectId::new(operators::database::names::storage_class_kind(), "", "fast"),
        json!({"metadata": {}}),
    );
    let mut all = BTreeMap::new();
    while world.phase() != "Ready" {
        assert!(world.writes.len() < 60, "never Ready: {}", world.root["status"]);
        let plan = world.pass();
        for step in &plan.steps {
            let (id, object) = match step {
                Step::Apply(apply) => (&apply.id, apply.intent.clone()),
                Step::CreateOnce(CreateOnce { id, template, generate, .. }) => {
                    let mut object = template.clone();
                    object["generated"] = json!(format!("{generate:?}"));
                    (id, object)
                }
                _ => continue,
            };
            all.entry(format!("{}-{}", id.kind.kind, id.name)).or_insert(object);
        }
        world.roll_out();
    }
    all
}

#[test]
fn children_are_as_recorded() {
    for case in CASES {
        for (name, object) in created(case) {
            let text = serde_json::to_string_pretty(&object).unwrap();
            insta::assert_snapshot!(format!("{case}-{name}"), text);
        }
    }
}

/// Labels that select, and labels of ours, cannot be replaced by the user's (G-51).
#[test]
fn our_labels_win() {
    let set = &created("rich")["StatefulSet-orders"];
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["app.kubernetes.io/name"], "postgresql");
    assert_eq!(labels["team"], "shop");
}

/// Values reach the file so that the server reads them back byte for byte (PG-13).
#[test]
fn settings_are_quoted() {
    let config = &created("rich")["ConfigMap-orders-config"];
    let text = config["data"]["postgresql.conf"].as_str().unwrap();
    assert!(text.contains("search_path = 'a\\\\b, ''c'''\n"), "{text}");
    assert!(text.contains("log_line_prefix = '%m\\t[%p]\\n'\n"), "{text}");
}

/// No Secret's value is anywhere outside a Secret, and no Secret is ever applied with data.
#[test]
fn secrets_are_generated_not_rendered() {
    for (name, object) in created("rich") {
        assert!(object.get("stringData").is_none(), "{name}");
        if name.starts_with("Secret") {
            assert!(object.get("data").is_none(), "{name}");
            assert!(object["generated"].as_str().unwrap().contains("Password"), "{name}");
        }
    }
}

/// Digests of pod templates as released. A line may only be added, for a new release that is said
/// to restart databases; a changed digest restarts every database at the upgrade (G-64).
#[test]
fn g_64_pod_templates_are_as_released() {
    let golden: Value = serde_json::from_str(include_str!("golden/pod-templates.json")).unwrap();
    let mut current = BTreeMap::new();
    for (case, set) in [
        ("seed", "StatefulSet-test-db"),
        ("rich", "StatefulSet-orders"),
        ("trio", "StatefulSet-trio"),
    ] {
        let template = created(case)[set]["spec"]["template"].clone();
        assert!(template["metadata"]["annotations"].get(INTENT_ANNOTATION).is_none());
        current.insert(case, phased::digest::of(&template));
    }
    let released = golden["0.1.0"].clone();
    assert_eq!(json!(current), released, "the pod template of an unchanged spec must not change");
}

/// The identity, the record and the Secrets are no part of the template: none of them restarts.
#[test]
fn what_changes_by_itself_is_not_in_the_template() {
    let mut world = World::new();
    world.bring_up();
    let set = world.objects[&world.names().stateful_set()]["spec"]["template"].to_string();
    for word in ["uid-root", "7000000000000000001", "made-"] {
        assert!(!set.contains(word), "{word}");
    }
}

/// Against what a real API server (1.36) stored of the very same children, nothing differs: a
/// steady resource costs no write.
#[test]
fn what_a_real_server_stores_is_as_declared() {
    let stored: Vec<Value> =
        serde_json::from_str(include_str!("fixtures/stored-1.36.json")).unwrap();
    let mut compared = 0;
    for case in CASES {
        // Pods and claims are made by others; labels and annotations are all that is declared of
        // them, and a size that they have.
        let partly =
            |name: &str| ["Pod-", "PersistentVolumeClaim-"].iter().any(|k| name.starts_with(k));
        for (name, mut object) in created(case).into_iter().filter(|(n, _)| !partly(n)) {
            object.as_object_mut().unwrap().remove("generated");
            let live = stored
                .iter()
                .find(|s| {
                    format!(
                        "{}-{}",
                        s["kind"].as_str().unwrap(),
                        s["metadata"]["name"].as_str().unwrap()
                    ) == name
                })
                .unwrap_or_else(|| panic!("{name} was not stored"));
            let difference = phased::compare::difference(&object, live);
            assert!(difference.is_none(), "{case} {name}: {}", difference.unwrap());
            compared += 1;
        }
    }
    assert_eq!(compared, 23);
}

/// One template for any number of servers: the first standby restarts nobody.
#[test]
fn the_template_does_not_depend_on_the_number_of_servers() {
    let template = |case: &str, set: &str| created(case)[set]["spec"]["template"].to_string();
    let trio = template("trio", "StatefulSet-trio").replace("trio", "test-db");
    let seed = template("seed", "StatefulSet-test-db");
    let without = |text: &str| {
        let mut value: Value = serde_json::from_str(text).unwrap();
        let digests = &mut value["metadata"]["annotations"];
        for key in ["steadfast.dev/config", "steadfast.dev/template"] {
            assert!(digests[key].as_str().is_some_and(|digest| digest.len() == 24));
            digests[key] = Value::Null;
        }
        value
    };
    assert_eq!(without(&trio), without(&seed));
}
