//! Patches by table; the JSON patch rows were compared with kube-apiserver 1.36.

use serde_json::{Value, json};

use super::*;
use crate::schema::built_in;

#[test]
fn json_patch_as_the_server_does_it() {
    let live = json!({"metadata": {"name": "p"}, "data": {"a": "1"}, "list": ["x", "y"]});
    for (operations, want) in [
        (
            json!([{"op": "test", "path": "/metadata/finalizers", "value": null}]),
            Some(live.clone()),
        ),
        (json!([{"op": "test", "path": "/data/a", "value": "2"}]), None),
        (json!([{"op": "test", "path": "/none/a", "value": null}]), None),
        (json!([{"op": "remove", "path": "/data/zz"}]), None),
        (json!([{"op": "add", "path": "/metadata/labels/x", "value": "2"}]), None),
        (json!([{"op": "replace", "path": "/spec/zz", "value": "2"}]), None),
        (json!([{"op": "add", "path": "/list/5", "value": "z"}]), None),
        (json!([{"op": "bogus", "path": "/list"}]), None),
        (
            json!([{"op": "replace", "path": "/data/zz", "value": "2"}, {"op": "remove", "path": "/list"}]),
            Some(json!({"metadata": {"name": "p"}, "data": {"a": "1", "zz": "2"}})),
        ),
        (
            json!([{"op": "add", "path": "/list/-", "value": "z"}, {"op": "remove", "path": "/list/0"},
                {"op": "move", "from": "/data/a", "path": "/data/b~1c"}]),
            Some(json!({"metadata": {"name": "p"}, "data": {"b/c": "1"}, "list": ["y", "z"]})),
        ),
        (
            json!([{"op": "remove", "path": "/list/-1"}, {"op": "add", "path": "/list/0", "value": "w"}]),
            Some(json!({"metadata": {"name": "p"}, "data": {"a": "1"}, "list": ["w", "x"]})),
        ),
    ] {
        assert_eq!(json(&live, &operations).ok(), want, "{operations}");
    }
}

#[test]
fn merge_patch_replaces_lists_and_drops_nulls() {
    let merged = merge(
        &json!({"a": {"b": 1, "c": [1, 2]}}),
        &json!({"a": {"b": null, "c": [3]}, "d": {"e": null}}),
    );
    assert_eq!(merged, json!({"a": {"c": [3]}, "d": {}}));
}

fn pod(containers: Value) -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"containers": containers}})
}

fn strategic_pod(live: &Value, patch: Value) -> Result<Value, String> {
    strategic(&built_in("", "v1", "Pod").expect("a kind of the table"), live, &patch)
}

#[test]
fn strategic_merges_keyed_lists() {
    let live = pod(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]));
    for (patch, want) in [
        (
            json!({"spec": {"containers": [{"name": "b", "image": "2"}]}}),
            json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]),
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}),
            json!([{"name": "b", "image": "1"}]),
        ),
        (
            json!({"spec": {"containers": [{"name": "c", "image": "3"}, {"$patch": "replace"}]}}),
            json!([{"name": "c", "image": "3"}]),
        ),
        (
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                "containers": [{"name": "a", "image": "9"}]}}),
            json!([{"name": "b", "image": "1"}, {"name": "a", "image": "9"}]),
        ),
        (
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}),
            json!([{"name": "b", "image": "1"}, {"name": "a", "image": "1"}]),
        ),
        (
            json!({"spec": {"containers": [{"name": "c", "image": "3", "args": null}]}}),
            json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}, {"name": "c", "image": "3", "args": null}]),
        ),
    ] {
        let patched = strategic_pod(&live, patch.clone()).expect("well formed");
        let mut containers = patched["spec"]["containers"].clone();
        // New items are ordered by the patch; where the live list knows neither, either is right.
        if let Some(list) = containers.as_array_mut()
            && patch["spec"]["$setElementOrder/containers"].is_null()
        {
            list.sort_by_key(|container| container["name"].to_string());
        }
        assert_eq!(containers, want, "{patch}");
    }
}

#[test]
fn strategic_follows_the_other_directives() {
    let live = json!({"metadata": {"name": "p", "finalizers": ["a/b", "c/d"]},
        "spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}});
    let patched = strategic_pod(
        &live,
        json!({"metadata": {"finalizers": ["e/f"], "$deleteFromPrimitiveList/finalizers": ["a/b"]},
            "spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}}),
    )
    .expect("well formed");
    assert_eq!(patched["spec"]["volumes"], json!([{"name": "v", "hostPath": {"path": "/x"}}]));
    let mut finalizers = patched["metadata"]["finalizers"].as_array().cloned().expect("a list");
    finalizers.sort_by_key(Value::to_string);
    assert_eq!(finalizers, [json!("c/d"), json!("e/f")]);
    let replaced = strategic_pod(&live, json!({"metadata": {"name": "p", "$patch": "replace"}}));
    assert_eq!(replaced.expect("well formed")["metadata"], json!({"name": "p"}));
}

#[test]
fn strategic_refuses_what_contradicts_itself() {
    let live = pod(json!([{"name": "a", "image": "1"}]));
    for (patch, want) in [
        (json!({"$patch": "bogus"}), "unknown patch type: bogus in map: map[$patch:bogus]"),
        (
            json!({"spec": {"containers": [{"image": "1"}]}}),
            "map: map[image:1] does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "$retainKeys": ["name"], "image": "2"}]}}),
            "invalid patch format of retainKeys",
        ),
    ] {
        assert_eq!(strategic_pod(&live, patch), Err(want.to_owned()));
    }
}

/// Random strategic patches of a PodTemplate against what kube-apiserver 1.36.3 made of them.
#[test]
fn strategic_patches_end_as_recorded() {
    let rows: Vec<Value> =
        serde_json::from_str(include_str!("recorded.json")).expect("a recording");
    let kind =
        crate::kind::Kinds::default().by_kind("v1", "PodTemplate").expect("a kind of the table");
    let mut differences = Vec::new();
    for row in &rows {
        let ours = strategic(&kind.schema, &row["live"], &row["patch"]).map(|mut object| {
            crate::admit::default(&kind, &mut object);
            crate::admit::normalize(&kind, &mut object);
            object["template"].clone()
        });
        let theirs = match row["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(row["patched"]["template"].clone()),
        };
        if ours != theirs {
            let show = |side: &Result<Value, String>| match side {
                Ok(object) => object.to_string(),
                Err(error) => format!("{error:?}"),
            };
            differences.push(format!(
                "patch {}\n  live   {}\n  ours   {}\n  theirs {}",
                row["patch"],
                row["live"]["template"],
                show(&ours),
                show(&theirs)
            ));
        }
    }
    assert!(rows.len() > 50, "the recording has patches");
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}
