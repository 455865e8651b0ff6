//! Custom resources against what kube-apiserver 1.36.3 answered.
//!
//! `recorded.json` holds a CRD with every feature once, objects sent to it and the answers.

use serde_json::{Value, json};

use super::*;

fn recorded() -> Value {
    serde_json::from_str(include_str!("recorded.json")).expect("a recording")
}

fn list<'a>(recorded: &'a Value, field: &str) -> &'a [Value] {
    recorded[field].as_array().map_or(&[], Vec::as_slice)
}

fn compiled(recorded: &Value) -> CompiledVersion {
    compile(&recorded["crd"]).expect("structural").remove(0)
}

/// The causes as comparable lines; the server lists sibling fields in random order.
fn lines(causes: &[Cause]) -> Vec<String> {
    let mut lines: Vec<String> = causes
        .iter()
        .map(|cause| format!("{} {}: {}", cause.reason, cause.field, cause.message))
        .collect();
    lines.sort();
    lines
}

fn recorded_lines(answer: &Value) -> Vec<String> {
    let mut lines: Vec<String> = list(answer, "causes")
        .iter()
        .map(|cause| {
            let text = |field: &str| cause[field].as_str().unwrap_or_default().to_owned();
            format!("{} {}: {}", text("reason"), text("field"), text("message"))
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn creates_are_answered_as_recorded() {
    let recorded = recorded();
    let version = compiled(&recorded);
    let mut differences = Vec::new();
    for answer in list(&recorded, "creates") {
        let mut object = answer["sent"].clone();
        version.prune(&mut object);
        version.default(&mut object);
        let ours = lines(&version.validate(&object, None));
        let theirs = recorded_lines(answer);
        if ours != theirs {
            differences.push(format!(
                "{}\n  ours   {ours:?}\n  theirs {theirs:?}",
                answer["sent"]["spec"]
            ));
        }
        if let Some(stored) = answer.get("stored")
            && stored["spec"] != object["spec"]
        {
            differences.push(format!("stored {}\n  ours   {}", stored["spec"], object["spec"]));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn updates_are_answered_as_recorded() {
    let recorded = recorded();
    let version = compiled(&recorded);
    for answer in list(&recorded, "updates") {
        let (mut new, mut old) = (answer["sent"].clone(), answer["old"].clone());
        version.default(&mut new);
        version.default(&mut old);
        assert_eq!(
            lines(&version.validate(&new, Some(&old))),
            recorded_lines(answer),
            "{}",
            answer["sent"]
        );
    }
}

#[test]
fn unknown_fields_are_named_in_order() {
    let version = compiled(&recorded());
    let mut object = json!({"apiVersion": "x.example.com/v1", "kind": "Widget", "foo": 1,
        "metadata": {"name": "w"},
        "spec": {"size": 1, "unk": 1, "def": {"q": 1}, "kmap": [{"k": "a", "zz": 1}],
            "free": {"q": {"r": 1}}, "any": {"x": 1}, "map": {"a": 1}}});
    assert_eq!(version.prune(&mut object), ["foo", "spec.def.q", "spec.kmap[0].zz", "spec.unk"]);
    assert_eq!(
        object["spec"],
        json!({"size": 1, "def": {}, "kmap": [{"k": "a"}],
        "free": {"q": {"r": 1}}, "any": {"x": 1}, "map": {"a": 1}})
    );
}

#[test]
fn a_status_write_names_fields_from_the_status_on() {
    let version = compiled(&recorded());
    let old = json!({"metadata": {"name": "w"}, "spec": {"size": 1}});
    let mut new = old.clone();
    new["status"] = json!({"phase": "Sideways", "n": -1});
    let causes = lines(&version.validate(&new, Some(&old)));
    assert!(causes.contains(&"FieldValueInvalid status.n: Invalid value: -1: n in body should be greater than or equal to 0".to_owned()), "{causes:?}");
    assert!(causes.contains(&"FieldValueNotSupported status.phase: Unsupported value: \"Sideways\": supported values: \"Up\", \"Down\"".to_owned()), "{causes:?}");
}

#[test]
fn what_was_wrong_before_is_tolerated_while_it_stays() {
    let version = compiled(&recorded());
    let old = json!({"metadata": {"name": "w"}, "spec": {"size": 9, "mode": "Z"}});
    let mut new = old.clone();
    new["spec"]["name"] = json!("abc");
    assert_eq!(lines(&version.validate(&new, Some(&old))), Vec::<String>::new());
    new["spec"]["size"] = json!(8);
    assert_eq!(version.validate(&new, Some(&old)).len(), 1);
}

#[test]
fn schemas_must_be_structural() {
    let crd = |schema: Value| json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let at = |rest: &str| format!("spec.validation.openAPIV3Schema{rest}");
    for (schema, field, message) in [
        (json!({}), at(".type"), "Required value: must not be empty at the root"),
        (
            json!({"type": "string"}),
            at(".type"),
            "Invalid value: \"string\": must be object at the root",
        ),
        (
            json!({"type": "object", "properties": {"spec": {}}}),
            at(".properties[spec].type"),
            "Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "object", "properties": {"l": {"type": "array"}}}),
            at(".properties[l].items"),
            "Required value: must be specified",
        ),
        (
            json!({"type": "object", "properties": {"l": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}}}),
            at(".properties[l].uniqueItems"),
            "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            json!({"type": "object", "properties": {"c": {"type": "string", "default": 5}}}),
            at(".properties[c].default"),
            "Invalid value: \"integer\":  in body must be of type string: \"integer\"",
        ),
        (
            json!({"type": "object", "properties": {"d": {"type": "object", "default": {}, "required": ["x"],
                "properties": {"x": {"type": "string"}}}}}),
            at(".properties[d].default.x"),
            "Required value",
        ),
        (
            json!({"type": "object", "properties": {"c": {"type": "bogus"}}}),
            at(".properties[c].type"),
            "Unsupported value: \"bogus\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"foo": {"type": "string"}}}}}),
            at(".properties[metadata]"),
            "Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ),
        (
            json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["b"], "items": {"type": "object", "properties": {"a": {"type": "string"}}}}}}),
            at(".properties[l].x-kubernetes-list-map-keys"),
            "Invalid value: [\"b\"]: entries must all be names of item properties",
        ),
        (
            json!({"type": "object", "properties": {"n": {"type": "object", "anyOf": [{"type": "string"}]}}}),
            at(".properties[n].anyOf[0].type"),
            "Forbidden: must be empty to be structural",
        ),
    ] {
        let causes = compile(&crd(schema)).expect_err("not structural");
        assert_eq!(
            (causes[0].field.as_str(), causes[0].message.as_str()),
            (field.as_str(), message)
        );
    }
}

/// Random updates of objects that were stored under a looser schema, so that many were invalid
/// before: what an update leaves alone is tolerated, what it touches is not.
#[test]
fn random_updates_are_answered_as_recorded() {
    let version = compiled(&recorded());
    let rows: Vec<Value> = serde_json::from_str(include_str!("updates.json")).expect("a recording");
    let mut differences = Vec::new();
    for row in &rows {
        let (mut new, mut old) = (row["sent"].clone(), row["old"].clone());
        for object in [&mut new, &mut old] {
            version.prune(object);
            version.default(object);
        }
        let (ours, theirs) = (lines(&version.validate(&new, Some(&old))), recorded_lines(row));
        if ours != theirs {
            differences.push(format!("{row}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }
    let refused = rows.iter().filter(|row| !list(row, "causes").is_empty()).count();
    assert!(refused > 40 && refused < rows.len(), "the recording has both answers");
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}
