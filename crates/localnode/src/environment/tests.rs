//! Tables for the environment of a container.

use super::*;
use serde_json::{Value, json};

fn check(container: Value) -> Result<BTreeMap<String, String>, ConfigError> {
    let container: Container = serde_json::from_value(container).expect("a container");
    let pod = serde_json::from_value(json!({"metadata": {
        "name": "db-0", "namespace": "ns", "uid": "u1", "labels": {"app": "x"}},
        "spec": {"nodeName": "n", "containers": []}}))
    .expect("a pod");
    let sources = Sources {
        config_maps: BTreeMap::from([(
            "c".to_owned(),
            serde_json::from_value(json!({"data": {"k": "v", "j": "w"}})).expect("a ConfigMap"),
        )]),
        secrets: BTreeMap::from([(
            "s".to_owned(),
            serde_json::from_value(json!({"data": {"password": "aHVzaA==", "bytes": "/w=="}}))
                .expect("a Secret"),
        )]),
    };
    let facts = PodFacts::of(&pod, Some("127.77.0.9".parse().expect("an address")));
    variables(&container, &facts, &sources).map(|variables| {
        assert!(variables.verbatim.iter().all(|name| name == "P"), "only P comes from a Secret");
        variables.values
    })
}

fn with_env(env: Value) -> Value {
    json!({"name": "m", "env": env, "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}})
}

#[test]
fn values_come_from_every_kind_of_source() {
    let made = check(with_env(json!([
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)$(C)$$(A)"},
        {"name": "K", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": "P", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
        {"name": "URI", "value": "u:$(P)@h"},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
        {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "no", "key": "k", "optional": true}}}
    ])))
    .expect("all sources exist");
    let expected = [
        ("A", "1"),
        ("APP", "x"),
        ("B", "1$(C)$(A)"),
        ("CPU", "2"),
        ("IP", "127.77.0.9"),
        ("K", "v"),
        ("MEM", "1024"),
        ("NAME", "db-0"),
        ("P", "hush"),
        ("URI", "u:hush@h"),
    ];
    assert_eq!(made, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
}

#[test]
fn env_overrides_env_from() {
    let made = check(json!({"name": "m",
        "envFrom": [{"prefix": "X_", "configMapRef": {"name": "c"}},
                    {"secretRef": {"name": "no", "optional": true}}],
        "env": [{"name": "X_k", "value": "own"}]}))
    .expect("sources exist");
    assert_eq!(
        made,
        [("X_j", "w"), ("X_k", "own")].map(|(k, v)| (k.to_owned(), v.to_owned())).into()
    );
}

#[test]
fn missing_sources_are_named_as_a_kubelet_names_them() {
    for (from, expected) in [
        (json!({"secretKeyRef": {"name": "no", "key": "k"}}), "secret \"no\" not found"),
        (
            json!({"secretKeyRef": {"name": "s", "key": "nope"}}),
            "couldn't find key nope in Secret ns/s",
        ),
        (json!({"configMapKeyRef": {"name": "no", "key": "k"}}), "configmap \"no\" not found"),
        (
            json!({"configMapKeyRef": {"name": "c", "key": "no"}}),
            "couldn't find key no in ConfigMap ns/c",
        ),
        (
            json!({"secretKeyRef": {"name": "s", "key": "bytes"}}),
            "key bytes of Secret s is not valid UTF-8 text",
        ),
    ] {
        let error =
            check(with_env(json!([{"name": "E", "valueFrom": from}]))).expect_err("missing");
        assert_eq!(error.to_string(), expected);
    }
    let error = check(json!({"name": "m", "envFrom": [{"secretRef": {"name": "no"}}]}))
        .expect_err("missing");
    assert_eq!(error.to_string(), "secret \"no\" not found");
}
