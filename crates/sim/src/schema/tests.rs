//! What the built-in table says, and how objects are stored by it.

use serde_json::json;

use super::*;

fn stateful_set() -> Arc<Schema> {
    built_in("apps", "v1", "StatefulSet").expect("a kind of the table")
}

/// The relation of the list at `path`.
fn relation(schema: &Schema, path: &[&str]) -> Option<Relation> {
    let mut at = schema.resolve();
    for step in path {
        if let Schema::List(list) = at {
            at = list.item.resolve();
        }
        at = match at {
            Schema::Map(map) => map.child(step)?.resolve(),
            _ => return None,
        };
    }
    match at {
        Schema::List(list) => Some(list.relation.clone()),
        _ => None,
    }
}

#[test]
fn lists_relate_as_the_openapi_says() {
    let set = stateful_set();
    let keys =
        |names: &[&str]| Some(Relation::Keys(names.iter().map(|name| (*name).into()).collect()));
    let pod = ["spec", "template", "spec"];
    let of = |rest: &[&str]| relation(&set, &[&pod[..], rest].concat());
    assert_eq!(of(&["containers"]), keys(&["name"]));
    assert_eq!(of(&["containers", "ports"]), keys(&["containerPort", "protocol"]));
    assert_eq!(of(&["containers", "env"]), keys(&["name"]));
    assert_eq!(of(&["containers", "args"]), Some(Relation::Atomic));
    assert_eq!(of(&["containers", "volumeMounts"]), keys(&["mountPath"]));
    assert_eq!(of(&["volumes"]), keys(&["name"]));
    assert_eq!(of(&["tolerations"]), Some(Relation::Atomic));
    assert_eq!(of(&["imagePullSecrets"]), keys(&["name"]));
    assert_eq!(of(&["hostAliases"]), keys(&["ip"]));
    assert_eq!(of(&["topologySpreadConstraints"]), keys(&["topologyKey", "whenUnsatisfiable"]));
    assert_eq!(relation(&set, &["spec", "volumeClaimTemplates"]), Some(Relation::Atomic));
    assert_eq!(relation(&set, &["metadata", "ownerReferences"]), keys(&["uid"]));
    assert_eq!(relation(&set, &["metadata", "finalizers"]), Some(Relation::Set));
    assert_eq!(relation(&set, &["status", "conditions"]), keys(&["type"]));
}

#[test]
fn every_name_in_the_table_resolves() {
    for (group, kind) in [("", "Pod"), ("apps", "Deployment"), ("policy", "PodDisruptionBudget")] {
        let mut seen = std::collections::BTreeSet::new();
        visit(&built_in(group, "v1", kind).expect("a kind of the table"), &mut seen);
        assert!(seen.len() > 3, "{kind} refers to too few types");
    }
}

fn visit(schema: &Schema, seen: &mut std::collections::BTreeSet<&'static str>) {
    if let Schema::Named(name) = schema {
        assert!(table::named(name).is_some(), "no type {name}");
        if !seen.insert(name) {
            return;
        }
    }
    match schema.resolve() {
        Schema::Map(map) => {
            map.fields.values().for_each(|field| visit(&field.schema, seen));
            map.element.iter().for_each(|element| visit(element, seen));
        }
        Schema::List(list) => visit(&list.item, seen),
        _ => {}
    }
}

#[test]
fn stored_form_follows_the_struct_tags() {
    let sent = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "db", "labels": {}, "creationTimestamp": null},
        "spec": {
            "replicas": 0, "minReadySeconds": 0, "podManagementPolicy": "",
            "template": {"spec": {
                "hostNetwork": false, "nodeSelector": {}, "securityContext": {},
                "volumes": [{"name": "tmp", "emptyDir": {}}],
                "containers": [{"name": "db", "args": [], "stdin": false,
                    "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}},
                    "env": [{"name": "A", "value": ""}], "nonsense": 1}],
            }},
        },
    });
    let decoded = stateful_set().decode(&sent).expect("well typed");
    assert_eq!(decoded.unknown, ["spec.template.spec.containers[0].nonsense"]);
    assert_eq!(
        decoded.object,
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
            "spec": {
                "replicas": 0, "selector": null, "serviceName": "", "updateStrategy": {},
                "template": {"metadata": {}, "spec": {
                    "securityContext": {},
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                    "containers": [{"name": "db", "env": [{"name": "A"}],
                        "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}],
                }},
            },
            "status": {"replicas": 0, "availableReplicas": 0},
        })
    );
    let again = stateful_set().decode(&decoded.object).expect("stored form decodes");
    assert_eq!(again.object, decoded.object);
}

#[test]
fn wrong_types_are_refused_in_the_decoders_words() {
    for (spec, want) in [
        (
            json!({"replicas": "three"}),
            "json: cannot unmarshal string into Go struct field StatefulSetSpec.spec.replicas of type int32",
        ),
        (
            json!({"template": {"spec": {"containers": [{"image": 5}]}}}),
            "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image of type string",
        ),
        (
            json!({"template": {"spec": {"nodeSelector": {"a": 5}}}}),
            "json: cannot unmarshal number into Go struct field PodSpec.spec.template.spec.nodeSelector of type string",
        ),
        (
            json!({"template": {"spec": {"containers": {}}}}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            json!({"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "many"}}}]}}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ] {
        assert_eq!(stateful_set().decode(&json!({"spec": spec})), Err(want.to_owned()));
    }
}

#[test]
fn times_are_stored_in_whole_seconds_utc() {
    let pod = built_in("", "v1", "Pod").expect("a kind of the table");
    let sent = json!({"metadata": {}, "status": {"startTime": "2026-01-02T03:04:05.6+01:00"}});
    let stored = pod.decode(&sent).expect("well typed").object;
    assert_eq!(stored["status"]["startTime"], "2026-01-02T02:04:05Z");
}

#[test]
fn other_decoding_errors_are_the_servers() {
    let refused = |group: &str, kind: &str, object: Value| {
        built_in(group, "v1", kind)
            .expect("a kind of the table")
            .decode(&object)
            .expect_err("refused")
    };
    let lease =
        |time: &str| refused("coordination.k8s.io", "Lease", json!({"spec": {"renewTime": time}}));
    let layout = "2006-01-02T15:04:05.000000Z07:00";
    assert_eq!(
        lease("2026-01-01T00:00:00.5Z"),
        format!(
            "parsing time \"2026-01-01T00:00:00.5Z\" as \"{layout}\": cannot parse \".5Z\" as \".000000\""
        )
    );
    assert_eq!(
        lease("x"),
        format!("parsing time \"x\" as \"{layout}\": cannot parse \"x\" as \"2006\"")
    );
    assert_eq!(
        refused("", "Secret", json!({"data": {"a": "!!"}})),
        "illegal base64 data at input byte 0"
    );
    assert_eq!(
        refused("", "Secret", json!({"data": {"a": 5}})),
        "json: cannot unmarshal number into Go struct field Secret.data of type []uint8"
    );
}

#[test]
fn the_converter_has_its_own_words() {
    let config = built_in("", "v1", "ConfigMap").expect("a kind of the table");
    for (object, want) in [
        (json!({"data": {"a": 5}}), Some("cannot convert int64 to string")),
        (json!({"data": {"a": true}}), Some("unrecognized type: string")),
        (json!({"data": "x"}), Some("cannot restore map from string")),
        (json!({"data": {"a": "x"}}), None),
    ] {
        assert_eq!(config.misfit(&object).as_deref(), want, "{object}");
    }
}
