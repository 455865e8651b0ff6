//! Laws of merging and ownership, over random configurations.

use proptest::prelude::*;
use serde_json::{Map as Object, Value, json};

use super::compare::compare;
use super::fields::Fields;
use super::walk::fields as fields_of;
use super::*;
use crate::schema::built_in;

fn writer(manager: &str) -> Writer {
    Writer {
        manager: manager.into(),
        force: false,
        subresource: None,
        api_version: "apps/v1".into(),
        time: "2026-01-01T00:00:00Z".into(),
    }
}

fn labels(prefix: &'static str) -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-c]", "[x-z]", 0..3).prop_map(move |labels| {
        labels
            .into_iter()
            .map(|(key, value)| (format!("{prefix}{key}"), json!(value)))
            .collect::<Object<_, _>>()
            .into()
    })
}

fn containers(prefix: &'static str) -> impl Strategy<Value = Vec<Value>> {
    prop::collection::btree_map("[a-c]", ("[x-z]", prop::option::of(1..3_i64)), 0..3).prop_map(
        move |containers| {
            containers
                .into_iter()
                .map(|(name, (image, port))| {
                    let mut container = json!({"name": format!("{prefix}{name}"), "image": image});
                    if let Some(port) = port {
                        container["ports"] = json!([{"containerPort": port}]);
                    }
                    container
                })
                .collect()
        },
    )
}

/// Configurations whose labels and containers all start with `prefix`.
fn config(prefix: &'static str) -> impl Strategy<Value = Value> {
    (labels(prefix), containers(prefix)).prop_map(|(labels, containers)| {
        let mut spec = json!({});
        if !containers.is_empty() {
            spec = json!({"template": {"spec": {"containers": containers}}});
        }
        let mut config = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web"}});
        // An empty map that is sent is owned as such, which is not what these laws are about.
        if spec != json!({}) {
            config["spec"] = spec;
        }
        if labels != json!({}) {
            config["metadata"]["labels"] = labels;
        }
        config
    })
}

fn apply(live: Option<&Value>, config: &Value, manager: &str) -> Result<Value, Vec<Conflict>> {
    let schema = built_in("apps", "v1", "Deployment").expect("a kind of the table");
    server_side(&schema, live, config, &writer(manager))
        .map(|object| schema.decode(&object).expect("well typed").object)
}

/// The object with keyed lists in the order of their keys, since order is not owned, and without
/// times, which an apply that changes nothing does not set.
fn sorted(mut object: Value) -> Value {
    if let Some(entries) = object["metadata"]["managedFields"].as_array_mut() {
        for entry in entries.iter_mut() {
            entry["time"] = Value::Null;
        }
        entries.sort_by_key(|entry| entry["manager"].to_string());
    }
    if let Some(list) = object["spec"]["template"]["spec"]["containers"].as_array_mut() {
        list.sort_by_key(|container| container["name"].to_string());
    }
    object
}

proptest! {
    #[test]
    fn applying_twice_changes_nothing(base in config("p"), change in config("p")) {
        let base = apply(None, &base, "one").expect("new");
        let once = apply(Some(&base), &change, "one").expect("own fields");
        let twice = apply(Some(&once), &change, "one").expect("own fields");
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn disjoint_managers_commute(a in config("p"), b in config("q")) {
        let ab = apply(Some(&apply(None, &a, "a").expect("new")), &b, "b").expect("disjoint");
        let ba = apply(Some(&apply(None, &b, "b").expect("new")), &a, "a").expect("disjoint");
        prop_assert_eq!(sorted(ab), sorted(ba));
    }

    #[test]
    fn what_is_dropped_goes(a in config("p"), b in config("p")) {
        let first = apply(None, &a, "one").expect("new");
        let replaced = apply(Some(&first), &b, "one").expect("own fields");
        let fresh = apply(None, &b, "one").expect("new");
        prop_assert_eq!(sorted(replaced), sorted(fresh));
    }

    #[test]
    fn a_manager_that_leaves_leaves_the_other_as_it_was(a in config("p"), b in config("q")) {
        let alone = apply(None, &a, "a").expect("new");
        let both = apply(Some(&alone), &b, "b").expect("disjoint");
        let nothing = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
        let left = apply(Some(&both), &nothing, "b").expect("own fields");
        prop_assert_eq!(sorted(left), sorted(alone));
    }

    #[test]
    fn encoding_loses_nothing(a in config("p")) {
        let schema = built_in("apps", "v1", "Deployment").expect("a kind of the table");
        let set = fields_of(&schema, &a);
        prop_assert_eq!(Fields::decode(&set.encode()), Some(set));
    }

    #[test]
    fn comparison_is_empty_only_for_equals(a in config("p"), b in config("p")) {
        let schema = built_in("apps", "v1", "Deployment").expect("a kind of the table");
        let changes = compare(&schema, &a, &b);
        let none = changes.added.is_empty() && changes.modified.is_empty() && changes.removed.is_empty();
        prop_assert_eq!(none, sorted(a) == sorted(b));
    }
}
