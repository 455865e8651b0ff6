//! What counts as a difference between a declaration and the stored object.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use phased::compare::difference;
use serde_json::{Value, json};

/// Compares and names the field as people read it.
fn found(wanted: &Value, live: &Value) -> Option<String> {
    difference(wanted, live).map(|path| path.spelled(live))
}

/// A StatefulSet as a server would store it, defaults filled in, a side-car injected.
fn stored_set() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {
            "name": "db", "namespace": "ns", "uid": "u1", "generation": 3,
            "labels": {"app": "db", "team": "blue"},
            "annotations": {"note": "kept"},
            "finalizers": ["theirs", "ours"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "o1",
                "controller": true, "blockOwnerDeletion": true}]
        },
        "spec": {
            "replicas": 3, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {
                    "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "securityContext": {},
                    "tolerations": [{"key": "added", "operator": "Exists"},
                        {"key": "spot", "operator": "Exists"}],
                    "containers": [
                        {"name": "proxy", "image": "proxy:1"},
                        {"name": "server", "image": "pg:17", "imagePullPolicy": "IfNotPresent",
                            "command": ["run", "--fast"],
                            "ports": [{"containerPort": 5432, "protocol": "TCP", "name": "pg"},
                                {"containerPort": 9187, "protocol": "TCP"}],
                            "env": [{"name": "A", "value": "1"}, {"name": "EMPTY"},
                                {"name": "POD", "valueFrom": {"fieldRef":
                                    {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
                            "resources": {"limits": {"cpu": "500m", "memory": "1Gi"},
                                "requests": {"cpu": "500m", "memory": "1Gi"}},
                            "volumeMounts": [{"name": "run", "mountPath": "/run"},
                                {"name": "data", "mountPath": "/data"}]}
                    ],
                    "volumes": [{"name": "run", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "t", "emptyDir": {}}]
                }
            },
            "volumeClaimTemplates": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                    "resources": {"requests": {"storage": "1536Mi"}}}, "status": {"phase": "Pending"}}]
        },
        "status": {"replicas": 3}
    })
}

/// The same as declared: other spellings, no defaults, fields that the server drops.
fn declared_set() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {
            "name": "db", "namespace": "ns", "labels": {"app": "db"}, "annotations": {},
            "finalizers": ["ours"], "creationTimestamp": null,
            "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "o1",
                "controller": true, "blockOwnerDeletion": true}]
        },
        "spec": {
            "replicas": 3, "minReadySeconds": 0,
            "selector": {"matchLabels": {"app": "db"}, "matchExpressions": []},
            "template": {
                "metadata": {"labels": {"app": "db"}, "annotations": {}},
                "spec": {
                    "hostNetwork": false, "affinity": {"nodeAffinity": {}}, "nodeSelector": {},
                    "tolerations": [{"key": "spot", "operator": "Exists"}],
                    "containers": [
                        {"name": "server", "image": "pg:17", "args": [], "workingDir": "",
                            "command": ["run", "--fast"],
                            "ports": [{"containerPort": 5432, "name": "pg"}],
                            "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                                {"name": "EMPTY", "value": ""}],
                            "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}},
                            "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": false}]}
                    ],
                    "volumes": [{"name": "run", "emptyDir": {"sizeLimit": "1024Mi"}}, {"name": "t", "emptyDir": {}}]
                }
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1.5Gi"}}}}]
        }
    })
}

#[test]
fn a_declaration_in_force_shows_no_difference() {
    assert_eq!(found(&declared_set(), &stored_set()), None);
    assert_eq!(found(&stored_set(), &stored_set()), None);
}

#[test]
fn an_object_from_a_list_lacks_its_type_and_is_the_same() {
    let mut live = stored_set();
    let fields = live.as_object_mut().expect("an object");
    fields.remove("apiVersion");
    fields.remove("kind");
    assert_eq!(found(&declared_set(), &live), None);
}

#[test]
fn every_change_of_a_declared_field_is_found_and_named() {
    let server = "/spec/template/spec/containers/1";
    let table: Vec<(String, Value, &str)> = vec![
        ("/spec/replicas".into(), json!(2), ".spec.replicas"),
        ("/metadata/labels/app".into(), json!("x"), ".metadata.labels.app"),
        ("/metadata/finalizers".into(), json!(["theirs"]), ".metadata.finalizers[ours]"),
        (
            "/metadata/ownerReferences/0/controller".into(),
            json!(false),
            ".metadata.ownerReferences[uid=o1].controller",
        ),
        (
            format!("{server}/image"),
            json!("pg:18"),
            ".spec.template.spec.containers[name=server].image",
        ),
        (format!("{server}/name"), json!("other"), ".spec.template.spec.containers[name=server]"),
        (
            format!("{server}/command"),
            json!(["--fast", "run"]),
            ".spec.template.spec.containers[name=server].command[0]",
        ),
        (
            format!("{server}/command"),
            json!(["run"]),
            ".spec.template.spec.containers[name=server].command",
        ),
        (
            format!("{server}/ports/0/protocol"),
            json!("UDP"),
            ".spec.template.spec.containers[name=server].ports[containerPort=5432,protocol=TCP]",
        ),
        (
            format!("{server}/env/1"),
            json!({"name": "EMPTY", "value": "full"}),
            ".spec.template.spec.containers[name=server].env[name=EMPTY].value",
        ),
        (
            format!("{server}/resources/limits/cpu"),
            json!("501m"),
            ".spec.template.spec.containers[name=server].resources.limits.cpu",
        ),
        (
            format!("{server}/volumeMounts/1"),
            json!({"name": "data", "mountPath": "/data", "readOnly": true}),
            ".spec.template.spec.containers[name=server].volumeMounts[mountPath=/data].readOnly",
        ),
        (
            "/spec/template/spec/tolerations".into(),
            json!([{"key": "added", "operator": "Exists"}]),
            r#".spec.template.spec.tolerations[{"key":"spot","operator":"Exists"}]"#,
        ),
        (
            "/spec/template/spec/volumes/1".into(),
            json!({"name": "t", "hostPath": {"path": "/"}}),
            ".spec.template.spec.volumes[name=t].emptyDir",
        ),
        (
            "/spec/volumeClaimTemplates/0/spec/resources/requests/storage".into(),
            json!("2Gi"),
            ".spec.volumeClaimTemplates[0].spec.resources.requests.storage",
        ),
        ("/spec/volumeClaimTemplates".into(), json!([]), ".spec.volumeClaimTemplates"),
    ];
    for (pointer, value, named) in table {
        let mut live = stored_set();
        *live.pointer_mut(&pointer).unwrap_or_else(|| panic!("{pointer} exists")) = value;
        assert_eq!(found(&declared_set(), &live).as_deref(), Some(named), "{pointer}");
    }
}

#[test]
fn small_cases() {
    let table: Vec<(Value, Value, Option<&str>)> = vec![
        // Int-or-string: the type is part of the value.
        (
            json!({"spec": {"ports": [{"port": 5432, "targetPort": 5432}]}}),
            json!({"spec": {"ports": [{"port": 5432, "protocol": "TCP", "targetPort": 5432}]}}),
            None,
        ),
        (
            json!({"spec": {"ports": [{"port": 5432, "targetPort": "5432"}]}}),
            json!({"spec": {"ports": [{"port": 5432, "protocol": "TCP", "targetPort": 5432}]}}),
            Some(".spec.ports[port=5432,protocol=TCP].targetPort"),
        ),
        // The same number may be used with two protocols.
        (
            json!({"spec": {"ports": [{"port": 53, "protocol": "UDP", "name": "udp"}]}}),
            json!({"spec": {"ports": [{"port": 53, "protocol": "TCP", "name": "tcp"},
                {"port": 53, "protocol": "UDP", "name": "udp"}]}}),
            None,
        ),
        // A Service's selector holds as a whole; a label map does not.
        (
            json!({"spec": {"selector": {"a": "b"}}}),
            json!({"spec": {"selector": {"a": "b", "c": "d"}}}),
            Some(".spec.selector.c"),
        ),
        (
            json!({"metadata": {"labels": {"a": "b"}}}),
            json!({"metadata": {"labels": {"a": "b", "c": "d"}}}),
            None,
        ),
        // Empty texts: dropped as a field, stored as a value of a map.
        (json!({"data": {"k": ""}}), json!({"data": {}}), Some(".data.k")),
        (json!({"data": {"k": ""}}), json!({}), Some(".data")),
        (json!({"data": {}}), json!({}), None),
        (
            json!({"spec": {"storageClassName": ""}}),
            json!({"spec": {}}),
            Some(".spec.storageClassName"),
        ),
        (json!({"spec": {"priorityClassName": ""}}), json!({"spec": {}}), None),
        // The server fills what is declared empty.
        (json!({"spec": {"clusterIP": ""}}), json!({"spec": {"clusterIP": "10.0.0.1"}}), None),
        (
            json!({"spec": {"clusterIP": "None"}}),
            json!({"spec": {"clusterIP": "10.0.0.1"}}),
            Some(".spec.clusterIP"),
        ),
        // A stored false is stored: its loss is somebody's change.
        (
            json!({"automountServiceAccountToken": false}),
            json!({}),
            Some(".automountServiceAccountToken"),
        ),
        (json!({"spec": {"replicas": 0}}), json!({"spec": {}}), Some(".spec.replicas")),
        // Quantities only where quantities are.
        (json!({"data": {"cpu": "0.5"}}), json!({"data": {"cpu": "500m"}}), Some(".data.cpu")),
        (
            json!({"spec": {"hard": {"cpu": "0.5"}}}),
            json!({"spec": {"hard": {"cpu": "500m"}}}),
            None,
        ),
        (
            json!({"resourceFieldRef": {"divisor": "1000m"}}),
            json!({"resourceFieldRef": {"divisor": "1"}}),
            None,
        ),
        (
            json!({"metadata": {"annotations": {"divisor": "1000m"}}}),
            json!({"metadata": {"annotations": {"divisor": "1"}}}),
            Some(".metadata.annotations.divisor"),
        ),
        (
            json!({"spec": {"capacity": {"storage": "1Gi"}}}),
            json!({"spec": {"capacity": {"storage": "1G"}}}),
            Some(".spec.capacity.storage"),
        ),
        // Numbers.
        (json!({"n": 1}), json!({"n": 1.0}), None),
        (
            json!({"n": 9_007_199_254_740_993_u64}),
            json!({"n": 9_007_199_254_740_992_u64}),
            Some(".n"),
        ),
        // Lists of unknown objects: place by place.
        (
            json!({"rules": [{"verbs": ["get"], "apiGroups": [""]}]}),
            json!({"rules": [{"verbs": ["get", "list"], "apiGroups": [""]}]}),
            Some(".rules[0].verbs"),
        ),
        (json!({"rules": [{"a": 1}]}), json!({"rules": [{"a": 1}, {"a": 2}]}), Some(".rules")),
        // Two topology spread constraints of one key.
        (
            json!({"topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}]}),
            json!({"topologySpreadConstraints": [
                {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 2},
                {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}]}),
            None,
        ),
        // A network policy's ports carry no merge key.
        (
            json!({"spec": {"ingress": [{"ports": [{"port": 1}], "from": [{"podSelector": {}}]}]}}),
            json!({"spec": {"ingress": [{"ports": [{"port": 1, "protocol": "TCP"}], "from": [{"podSelector": {}}]}]}}),
            None,
        ),
        // Another shape altogether.
        (json!({"spec": {"a": {"b": 1}}}), json!({"spec": {"a": "text"}}), Some(".spec.a")),
        (json!({"spec": {"a": 1}}), json!({"spec": {"a": null}}), Some(".spec.a")),
        (json!({"spec": {"a": null}}), json!({"spec": {"a": 1}}), None),
        (
            json!({"metadata": {"annotations": {"x.dev/y": "1"}}}),
            json!({"metadata": {}}),
            Some(".metadata.annotations"),
        ),
        (
            json!({"metadata": {"annotations": {"x.dev/y": "1"}}}),
            json!({"metadata": {"annotations": {"z": ""}}}),
            Some(".metadata.annotations[x.dev/y]"),
        ),
    ];
    for (wanted, live, expected) in table {
        assert_eq!(found(&wanted, &live).as_deref(), expected, "{wanted} in {live}");
    }
}
