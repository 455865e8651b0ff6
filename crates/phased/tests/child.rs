//! How a child stands: missing, current, outdated by us or by somebody, foreign, terminating.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use phased::child::{Desired, Drift, INTENT_ANNOTATION, Owner, Standing};
use phased::step::{Expect, Step};
use phased::{KindRef, Live, ObjectId};
use serde_json::{Value, json};

const SERVICE: KindRef =
    KindRef { group: "", version: "v1", kind: "Service", plural: "services", namespaced: true };

fn owner() -> Owner {
    Owner { name: "orders".into(), uid: "o1".into(), manager: "steadfast/database".into() }
}

fn desired() -> Desired {
    Desired {
        id: ObjectId::new(SERVICE, "shop", "orders"),
        intent: json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "orders", "namespace": "shop", "labels": {"app": "orders"},
                "ownerReferences": [{"apiVersion": "database.example.com/v1", "kind": "Database",
                    "name": "orders", "uid": "o1", "controller": true}]},
            "spec": {"selector": {"app": "orders"}, "ports": [{"port": 5432, "targetPort": 5432}]}
        }),
    }
}

/// What the server stores after `desired` was applied.
fn stored(desired: &Desired) -> Value {
    let mut value = desired.sealed();
    value["metadata"]["uid"] = json!("u1");
    value["metadata"]["resourceVersion"] = json!("7");
    value["spec"]["ports"][0]["protocol"] = json!("TCP");
    value["spec"]["clusterIP"] = json!("10.0.0.9");
    value["metadata"]["managedFields"] = json!([{
        "manager": "steadfast/database", "operation": "Apply", "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {"f:selector": {}, "f:ports": {
                "k:{\"port\":5432,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}}
    }]);
    value
}

fn stand(desired: &Desired, live: Value) -> Standing {
    desired.stand(Some(&Live::new(live).expect("metadata")), &owner())
}

/// The reason and the culprit of an outdated child; its write must carry the uid and the digest.
fn outdated(desired: &Desired, live: Value) -> (String, Option<Drift>) {
    match stand(desired, live) {
        Standing::Outdated { step: Step::Apply(apply), drift } => {
            assert_eq!(apply.expect, Expect::Uid("u1".into()));
            assert_eq!(apply.intent, desired.sealed());
            (apply.why, drift)
        }
        other => panic!("not outdated: {other:?}"),
    }
}

#[test]
fn a_missing_child_is_created_only_if_absent() {
    let Standing::Missing(Step::Apply(apply)) = desired().stand(None, &owner()) else {
        panic!("not missing");
    };
    assert_eq!(apply.expect, Expect::Absent);
    assert!(apply.intent["metadata"]["annotations"][INTENT_ANNOTATION].is_string());
}

#[test]
fn a_child_as_declared_is_current_with_defaults_and_foreign_additions() {
    assert_eq!(stand(&desired(), stored(&desired())), Standing::Current);
    let mut live = stored(&desired());
    live["metadata"]["labels"]["team"] = json!("blue");
    live["metadata"]["annotations"]["cost-centre"] = json!("4711");
    live["spec"]["sessionAffinity"] = json!("None");
    assert_eq!(stand(&desired(), live), Standing::Current);
}

#[test]
fn a_new_mind_names_the_field_and_blames_nobody() {
    let live = stored(&desired());
    let mut wanted = desired();
    wanted.intent["spec"]["ports"][0]["targetPort"] = json!("pg");
    let (why, drift) = outdated(&wanted, live);
    assert_eq!(why, ".spec.ports[port=5432,protocol=TCP].targetPort is to change");
    assert_eq!(drift, None);
}

#[test]
fn a_field_that_is_no_longer_declared_is_noticed() {
    let mut before = desired();
    before.intent["metadata"]["annotations"]["old"] = json!("1");
    let (why, drift) = outdated(&desired(), stored(&before));
    assert_eq!(why, "a field is no longer declared");
    assert_eq!(drift, None);
}

#[test]
fn a_change_by_another_manager_is_drift_with_its_name() {
    let mut live = stored(&desired());
    live["spec"]["ports"][0]["targetPort"] = json!(1);
    live["metadata"]["managedFields"].as_array_mut().expect("a list").push(json!({
        "manager": "kubectl-edit", "operation": "Update", "apiVersion": "v1",
        "time": "2026-01-02T00:00:00Z", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:ports": {
            "k:{\"port\":5432,\"protocol\":\"TCP\"}": {"f:targetPort": {}}}}}
    }));
    let (why, drift) = outdated(&desired(), live);
    let field = ".spec.ports[port=5432,protocol=TCP].targetPort";
    assert_eq!(why, format!("{field} differs, set by kubectl-edit"));
    assert_eq!(drift, Some(Drift { field: field.into(), manager: "kubectl-edit".into() }));
}

#[test]
fn a_removed_field_is_drift_by_somebody_unknown() {
    let mut live = stored(&desired());
    live["metadata"]["labels"] = json!({"other": "x"});
    lose(&mut live, "/f:metadata/f:labels", "f:app");
    let (_, drift) = outdated(&desired(), live);
    let expected = Drift { field: ".metadata.labels.app".into(), manager: "unknown".into() };
    assert_eq!(drift, Some(expected));
}

#[test]
fn a_removed_digest_is_written_again() {
    let mut live = stored(&desired());
    live["metadata"]["annotations"] = json!({});
    let (why, drift) = outdated(&desired(), live);
    assert_eq!(why, "what was last applied is not recorded");
    assert_eq!(drift, None);
}

#[test]
fn a_digest_written_by_somebody_is_written_again() {
    let mut live = stored(&desired());
    live["metadata"]["annotations"][INTENT_ANNOTATION] = json!("forged");
    assert_eq!(outdated(&desired(), live).1, None);
}

#[test]
fn a_quantity_in_another_spelling_is_current() {
    let mut wanted = desired();
    wanted.intent["spec"]["resources"] = json!({"limits": {"cpu": "0.5"}});
    let mut live = stored(&wanted);
    live["spec"]["resources"] = json!({"limits": {"cpu": "500m"}});
    assert_eq!(stand(&wanted, live), Standing::Current);
}

#[test]
fn a_child_of_another_owner_is_foreign_even_while_it_is_deleted() {
    let mut live = stored(&desired());
    live["metadata"]["ownerReferences"][0]["uid"] = json!("o0");
    live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let expected = Standing::Foreign { owner: "Database orders (uid o0)".into() };
    assert_eq!(stand(&desired(), live), expected);
}

#[test]
fn an_orphan_is_ours_only_with_both_of_our_labels() {
    let mut live = stored(&desired());
    live["metadata"]["ownerReferences"] = json!([]);
    assert!(matches!(stand(&desired(), live.clone()), Standing::Foreign { .. }));
    live["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("steadfast");
    assert!(matches!(stand(&desired(), live.clone()), Standing::Foreign { .. }));
    live["metadata"]["labels"]["app.kubernetes.io/instance"] = json!("orders");
    let (why, _) = outdated(&desired(), live);
    assert!(why.contains(".metadata.ownerReferences[uid=o1]"), "{why}");
}

#[test]
fn a_child_that_is_being_deleted_is_left_alone() {
    let mut live = stored(&desired());
    live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    live["spec"]["ports"] = json!([]);
    assert_eq!(stand(&desired(), live), Standing::Terminating);
}

/// Takes a field out of what we hold, as the server does when somebody else writes it.
fn lose(live: &mut Value, below: &str, field: &str) {
    let held = &mut live["metadata"]["managedFields"][0]["fieldsV1"];
    let fields = held.pointer_mut(below).and_then(Value::as_object_mut).expect("we hold it");
    fields.remove(field).expect("we hold it");
    // A set without members would mean the whole.
    fields.insert("f:another".to_owned(), json!({}));
}

#[test]
fn g_28_a_field_that_we_hold_and_the_server_did_not_keep_is_not_sent_again() {
    let desired = desired();
    let mut live = stored(&desired);
    for kept in [Value::Null, json!("rewritten")] {
        live["spec"]["selector"]["app"] = kept;
        assert_eq!(stand(&desired, live.clone()), Standing::Current);
    }
    live["spec"].as_object_mut().expect("a map").remove("selector");
    assert_eq!(stand(&desired, live.clone()), Standing::Current, "dropped");
    // It hides no change of another field by somebody.
    let mut edited = live.clone();
    edited["metadata"]["labels"]["app"] = json!("edited");
    lose(&mut edited, "/f:metadata/f:labels", "f:app");
    let (why, drift) = outdated(&desired, edited);
    assert!(why.contains(".metadata.labels.app"), "{why}");
    assert!(drift.is_some());
    // What somebody took over is taken back.
    lose(&mut live, "/f:spec", "f:selector");
    let (why, _) = outdated(&desired, live);
    assert!(why.contains(".spec.selector"), "{why}");
}

#[test]
fn g_28_an_item_that_we_hold_and_the_server_dropped_is_not_sent_again() {
    let mut desired = desired();
    desired.intent["spec"]["ports"][0]["protocol"] = json!("TCP");
    let mut live = stored(&desired);
    live["spec"]["ports"] = json!([]);
    assert_eq!(stand(&desired, live.clone()), Standing::Current);
    lose(&mut live, "/f:spec/f:ports", "k:{\"port\":5432,\"protocol\":\"TCP\"}");
    outdated(&desired, live);
}
