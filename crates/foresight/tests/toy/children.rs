//! The children of a Widget.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use phased::child::Desired;
use phased::step::{CreateOnce, Generate};
use phased::{KindRef, Live, ObjectId};
use serde_json::{Value, json};

/// A child's name.
pub fn id(kind: &str, name: &str) -> ObjectId {
    let kind = match kind {
        "StatefulSet" => KindRef::of::<StatefulSet>(true),
        "ConfigMap" => KindRef::of::<ConfigMap>(true),
        "Secret" => KindRef::of::<Secret>(true),
        "Service" => KindRef::of::<Service>(true),
        "Pod" => KindRef::of::<Pod>(true),
        "PersistentVolumeClaim" => KindRef::of::<PersistentVolumeClaim>(true),
        other => panic!("no such kind: {other}"),
    };
    ObjectId::new(kind, "shop", name)
}

/// Labels of everything.
pub fn labels() -> Value {
    json!({"app.kubernetes.io/managed-by": "steadfast", "app.kubernetes.io/instance": "web"})
}

fn child(root: &Live, kind: &str, name: &str, mut body: Value) -> Desired {
    let id = id(kind, name);
    body["apiVersion"] = json!(id.kind.api_version());
    body["kind"] = json!(kind);
    body["metadata"]["name"] = json!(name);
    body["metadata"]["namespace"] = json!("shop");
    body["metadata"]["labels"] = labels();
    body["metadata"]["ownerReferences"] = json!([{"apiVersion": "toys.example.com/v1",
        "kind": "Widget", "name": "web", "uid": root.uid(), "controller": true}]);
    Desired { id, intent: body }
}

/// All but the Secret.
pub fn all(root: &Live) -> Vec<Desired> {
    let spec = &root.value["spec"];
    let greeting =
        format!("# written by toys\ngreeting = {}\n", spec["greeting"].as_str().unwrap_or(""));
    let container = json!({"name": "web", "image": spec["image"], "env": [{"name": "PASSWORD",
        "valueFrom": {"secretKeyRef": {"name": "web-login", "key": "password"}}}]});
    let claim = json!({"metadata": {"name": "data", "labels": labels()},
        "spec": {"resources": {"requests": {"storage": spec["size"]}}}});
    let set = json!({"spec": {
        "replicas": spec["replicas"],
        "serviceName": "web",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "selector": {"matchLabels": labels()},
        "template": {"metadata": {"labels": labels()}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [claim],
    }});
    vec![
        child(root, "ConfigMap", "web-config", json!({"data": {"web.conf": greeting}})),
        child(
            root,
            "Service",
            "web",
            json!({"spec": {"selector": labels(), "ports": [{"port": 80}]}}),
        ),
        child(root, "StatefulSet", "web", set),
    ]
}

/// The Secret, made once.
pub fn secret(root: &Live) -> CreateOnce {
    let desired = child(root, "Secret", "web-login", json!({}));
    CreateOnce {
        id: desired.id,
        template: desired.intent,
        generate: vec![Generate::Password { key: "password".to_owned(), length: 24 }],
        why: "missing".to_owned(),
    }
}

/// The claim of an ordinal, larger.
pub fn grown(ordinal: i64, size: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": format!("data-web-{ordinal}"), "namespace": "shop"},
        "spec": {"resources": {"requests": {"storage": size}}}})
}
