//! Who holds a field, for every form that `fieldsV1` knows.

use phased::Live;
use phased::compare::{Path, Segment};
use phased::ownership::holder;
use serde_json::{Value, json};

const US: &str = "steadfast/database";

fn path(steps: &[&str]) -> Path {
    let step =
        |s: &&str| s.parse().map_or_else(|_| Segment::Field((*s).to_owned()), Segment::Index);
    Path(steps.iter().map(step).collect())
}

fn live(managers: &[(&str, &str, Value)]) -> Live {
    let entries: Vec<Value> = managers
        .iter()
        .map(|(manager, time, fields)| {
            json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time,
                "fieldsType": "FieldsV1", "fieldsV1": fields})
        })
        .collect();
    Live::new(json!({
        "metadata": {"name": "x", "managedFields": entries, "finalizers": ["a", "b"]},
        "spec": {"replicas": 3, "selector": {"app": "x"},
            "ports": [{"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP", "name": "n"}],
            "rules": [{"host": "h"}]}
    }))
    .expect("metadata")
}

#[test]
fn every_form_of_a_member_is_read() {
    let fields = json!({
        "f:metadata": {"f:finalizers": {"v:\"b\"": {}}},
        "f:spec": {"f:replicas": {}, "f:selector": {}, "f:rules": {"i:0": {"f:host": {}}},
            "f:ports": {".": {}, "k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}}
    });
    let live = live(&[("editor", "2026-01-01T00:00:00Z", fields)]);
    let table: [(&[&str], bool); 11] = [
        (&["spec", "replicas"], true),
        (&["spec", "paused"], false),
        (&["spec", "selector", "app"], true),
        (&["spec", "ports"], true),
        (&["spec", "ports", "1", "name"], true),
        (&["spec", "ports", "1", "port"], false),
        (&["spec", "ports", "0", "name"], false),
        (&["spec", "rules", "0", "host"], true),
        (&["metadata", "finalizers", "1"], true),
        (&["metadata", "finalizers", "0"], false),
        (&["data", "key"], false),
    ];
    for (steps, held) in table {
        let expected = held.then(|| "editor".to_owned());
        assert_eq!(holder(&live, &path(steps), US), expected, "{steps:?}");
    }
}

#[test]
fn the_last_writer_is_named() {
    let field = json!({"f:spec": {"f:replicas": {}}});
    let live = live(&[
        ("second", "2026-01-02T00:00:00Z", field.clone()),
        ("first", "2026-01-01T00:00:00Z", field),
        ("third", "2026-01-03T00:00:00Z", json!({"f:spec": {"f:selector": {}}})),
        ("fourth", "2026-01-04T00:00:00Z", json!({})),
    ]);
    assert_eq!(holder(&live, &path(&["spec", "replicas"]), US).as_deref(), Some("second"));
}

#[test]
fn nobody_is_blamed_while_we_hold_it_too() {
    let field = json!({"f:spec": {"f:replicas": {}}});
    let live = live(&[
        (US, "2026-01-01T00:00:00Z", field.clone()),
        ("other", "2026-01-02T00:00:00Z", field),
    ]);
    assert_eq!(holder(&live, &path(&["spec", "replicas"]), US), None);
}
