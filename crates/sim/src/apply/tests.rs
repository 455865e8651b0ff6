//! Ownership by example, checked against what kube-apiserver writes.

use serde_json::{Value, json};

use super::*;
use crate::schema::built_in;

fn writer(manager: &str, time: &str) -> Writer {
    Writer {
        manager: manager.into(),
        force: false,
        subresource: None,
        api_version: "apps/v1".into(),
        time: format!("2026-01-01T00:00:{time}Z"),
    }
}

fn deployment() -> std::sync::Arc<Schema> {
    built_in("apps", "v1", "Deployment").expect("a kind of the table")
}

fn config(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"}, "spec": spec})
}

fn apply_as(live: Option<&Value>, spec: Value, who: &Writer) -> Result<Value, Vec<Conflict>> {
    server_side(&deployment(), live, &config(spec), who).map(|object| {
        let mut object = deployment().decode(&object).expect("well typed").object;
        object["metadata"]["uid"] = json!("u");
        object
    })
}

fn entry<'a>(object: &'a Value, manager: &str, operation: &str) -> &'a Value {
    object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|entry| entry["manager"] == manager && entry["operation"] == operation)
        .map_or(&Value::Null, |entry| &entry["fieldsV1"])
}

fn container(image: &str) -> Value {
    json!({"name": "web", "image": image, "ports": [{"containerPort": 80}]})
}

#[test]
fn an_applier_owns_exactly_what_it_sends() {
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container("a")]}}});
    let made = apply_as(None, spec, &writer("one", "01")).expect("no conflict");
    assert_eq!(
        made["metadata"]["managedFields"],
        json!([{"manager": "one", "operation": "Apply", "apiVersion": "apps/v1",
            "time": "2026-01-01T00:00:01Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {
                "f:replicas": {}, "f:selector": {},
                "f:template": {"f:metadata": {"f:labels": {"f:app": {}}},
                    "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {
                        ".": {}, "f:name": {}, "f:image": {},
                        "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":
                            {".": {}, "f:containerPort": {}}}}}}}}}}])
    );
}

#[test]
fn conflicts_need_another_owner_and_another_value() {
    let first = apply_as(None, json!({"replicas": 2}), &writer("one", "01")).expect("new");
    let shared =
        apply_as(Some(&first), json!({"replicas": 2}), &writer("two", "02")).expect("same");
    assert_eq!(entry(&shared, "one", "Apply"), entry(&shared, "two", "Apply"));
    let refused = apply_as(Some(&shared), json!({"replicas": 3}), &writer("two", "03"));
    let conflicts = refused.expect_err("one owns another value");
    let (message, causes) = describe(&conflicts);
    assert_eq!(message, "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas");
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].field, ".spec.replicas");
    assert_eq!(causes[0].message, "conflict with \"one\"");
    let forced = Writer { force: true, ..writer("two", "03") };
    let taken = apply_as(Some(&shared), json!({"replicas": 3}), &forced).expect("forced");
    assert_eq!(taken["spec"]["replicas"], 3);
    assert_eq!(entry(&taken, "one", "Apply"), &Value::Null);
}

#[test]
fn several_conflicts_are_grouped_by_manager() {
    let conflicts = [
        Conflict { manager: "\"a\" using apps/v1".into(), field: ".spec.replicas".into() },
        Conflict { manager: "\"a\" using apps/v1".into(), field: ".spec.paused".into() },
        Conflict { manager: "\"b\"".into(), field: ".spec.replicas".into() },
    ];
    assert_eq!(
        describe(&conflicts).0,
        "Apply failed with 3 conflicts: conflicts with \"a\" using apps/v1:\n- .spec.replicas\n- .spec.paused\nconflicts with \"b\":\n- .spec.replicas"
    );
}

#[test]
fn fields_no_longer_applied_go_when_nobody_else_owns_them() {
    let two = json!({"template": {"spec": {"containers": [container("a"), {"name": "side", "image": "s"}]}}});
    let one = json!({"template": {"spec": {"containers": [container("a")]}}});
    let made = apply_as(None, two.clone(), &writer("one", "01")).expect("new");
    let dropped = apply_as(Some(&made), one.clone(), &writer("one", "02")).expect("mine");
    assert_eq!(
        dropped["spec"]["template"]["spec"]["containers"],
        json!([
        {"name": "web", "image": "a", "ports": [{"containerPort": 80}], "resources": {}}])
    );
    let shared = apply_as(Some(&made), two, &writer("two", "02")).expect("same values");
    let kept = apply_as(Some(&shared), one, &writer("one", "03")).expect("mine");
    let names = kept["spec"]["template"]["spec"]["containers"].as_array().map(Vec::len);
    assert_eq!(names, Some(2), "the other owner keeps the container");
}

#[test]
fn a_dropped_map_entry_leaves_the_others() {
    let both = json!({"template": {"metadata": {"labels": {"a": "1", "b": "2"}}}});
    let made = apply_as(None, both, &writer("one", "01")).expect("new");
    let left = apply_as(
        Some(&made),
        json!({"template": {"metadata": {"labels": {"a": "1"}}}}),
        &writer("one", "02"),
    );
    let left = left.expect("mine");
    assert_eq!(left["spec"]["template"]["metadata"]["labels"], json!({"a": "1"}));
}

#[test]
fn an_update_takes_what_it_changes() {
    let schema = deployment();
    let live =
        apply_as(None, json!({"replicas": 2, "paused": true}), &writer("one", "01")).expect("new");
    let mut after = live.clone();
    after["spec"]["replicas"] = json!(5);
    track(&schema, Some(&live), &mut after, &writer("kubectl", "05"));
    assert_eq!(entry(&after, "one", "Apply"), &json!({"f:spec": {"f:paused": {}}}));
    assert_eq!(entry(&after, "kubectl", "Update"), &json!({"f:spec": {"f:replicas": {}}}));
    let conflict =
        apply_as(Some(&after), json!({"replicas": 2, "paused": true}), &writer("one", "06"));
    let (message, _) = describe(&conflict.expect_err("taken"));
    assert_eq!(
        message,
        "Apply failed with 1 conflict: conflict with \"kubectl\" using apps/v1: .spec.replicas"
    );
    let mut same = after.clone();
    track(&schema, Some(&after), &mut same, &writer("kubectl", "59"));
    assert_eq!(same, after, "a write that changes nothing leaves times alone");
}

#[test]
fn a_create_owns_defaults_but_not_the_structs_that_are_always_there() {
    let schema = deployment();
    let mut made = schema
        .decode(&config(json!({"replicas": 1, "strategy": {"type": "Recreate"},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container("a")]}}})))
        .expect("well typed")
        .object;
    made["metadata"]["labels"] = json!({"app": "web"});
    track(&schema, None, &mut made, &writer("kubectl-create", "01"));
    assert_eq!(
        entry(&made, "kubectl-create", "Update"),
        &json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {"f:replicas": {}, "f:strategy": {"f:type": {}},
                "f:template": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                    "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {
                        ".": {}, "f:name": {}, "f:image": {}, "f:resources": {},
                        "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}":
                            {".": {}, "f:containerPort": {}}}}}}}}})
    );
}

#[test]
fn status_has_an_entry_of_its_own() {
    let schema = deployment();
    let live = apply_as(None, json!({"replicas": 2}), &writer("one", "01")).expect("new");
    let mut after = live.clone();
    after["status"]["readyReplicas"] = json!(1);
    let status = Writer { subresource: Some("status".into()), ..writer("kcm", "02") };
    track(&schema, Some(&live), &mut after, &status);
    let entries = after["metadata"]["managedFields"].as_array().expect("tracked");
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["subresource"], "status");
    assert_eq!(entries[1]["fieldsV1"], json!({"f:status": {"f:readyReplicas": {}}}));
}

#[test]
fn objects_without_owners_get_one_from_before_the_first_apply() {
    let live = config(json!({"replicas": 4, "paused": true}));
    let applied =
        apply_as(Some(&live), json!({"paused": true}), &writer("one", "09")).expect("same");
    assert_eq!(entry(&applied, "one", "Apply"), &json!({"f:spec": {"f:paused": {}}}));
    let earlier = entry(&applied, "before-first-apply", "Update");
    assert_eq!(earlier, &json!({"f:spec": {"f:replicas": {}, "f:paused": {}}}));
    let refused = apply_as(Some(&live), json!({"replicas": 9}), &writer("one", "09"));
    let (message, _) = describe(&refused.expect_err("owned from before"));
    assert!(message.contains("\"before-first-apply\" using apps/v1"), "{message}");
}

#[test]
fn owners_are_forgotten_on_request() {
    let schema = deployment();
    let live = apply_as(None, json!({"replicas": 2}), &writer("one", "01")).expect("new");
    let mut after = live.clone();
    after["metadata"]["managedFields"] = json!([{}]);
    track(&schema, Some(&live), &mut after, &writer("kubectl", "02"));
    assert_eq!(after["metadata"].get("managedFields"), None);
    let before = after.clone();
    after["spec"]["replicas"] = json!(7);
    track(&schema, Some(&before), &mut after, &writer("kubectl", "03"));
    assert_eq!(after["metadata"].get("managedFields"), None, "untracked until the next apply");
}

#[test]
fn many_updaters_are_joined() {
    let schema = deployment();
    let mut live = apply_as(None, json!({"replicas": 2}), &writer("one", "01")).expect("new");
    for number in 0..12 {
        let mut after = live.clone();
        after["metadata"]["annotations"][format!("k{number}")] = json!("v");
        track(
            &schema,
            Some(&live),
            &mut after,
            &writer(&format!("m{number:02}"), &format!("{:02}", number + 10)),
        );
        live = after;
    }
    let updaters = live["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|entry| entry["operation"] == "Update");
    assert_eq!(updaters.count(), 10);
    let ancient = entry(&live, "ancient-changes", "Update");
    assert_eq!(
        ancient["f:metadata"]["f:annotations"].as_object().map(serde_json::Map::len),
        Some(4)
    );
}

#[test]
fn client_side_apply_is_no_conflict_for_kubectl() {
    let schema = deployment();
    let mut live = schema.decode(&config(json!({"replicas": 2}))).expect("well typed").object;
    live["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration":
        config(json!({"replicas": 2})).to_string()});
    track(&schema, None, &mut live, &writer("kubectl-client-side-apply", "01"));
    let taken =
        apply_as(Some(&live), json!({"replicas": 3}), &writer("kubectl", "02")).expect("upgrade");
    assert_eq!(taken["spec"]["replicas"], 3);
    let text =
        &taken["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    assert!(text.as_str().is_some_and(|text| text.contains("\"replicas\":3")));
    let refused = apply_as(Some(&live), json!({"replicas": 3}), &writer("other", "02"));
    assert!(refused.is_err());
}

#[test]
fn what_does_not_fit_the_schema_is_refused_before_merging() {
    for (spec, want) in [
        (json!({"foo": 1}), ".spec.foo: field not declared in schema"),
        (json!({"replicas": "x"}), ".spec.replicas: expected numeric (int or float), got string"),
        (
            json!({"template": {"spec": {"containers": [container("a"), container("b")]}}}),
            ".spec.template.spec.containers: duplicate entries for key [name=\"web\"]",
        ),
        (
            json!({"template": {"spec": {"containers": {}}}}),
            ".spec.template.spec.containers: expected list, got &{map[]}",
        ),
    ] {
        assert_eq!(check(&deployment(), &config(spec)), Err(want.to_owned()));
    }
    assert_eq!(check(&deployment(), &config(json!({"replicas": null}))), Ok(()));
}

#[test]
fn custom_resources_own_their_structs() {
    let schema = Schema::any();
    let mut made = json!({"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "a"}, "spec": {"size": 1}});
    track(&schema, None, &mut made, &writer("client", "01"));
    assert_eq!(entry(&made, "client", "Update"), &json!({"f:spec": {".": {}, "f:size": {}}}));
}
