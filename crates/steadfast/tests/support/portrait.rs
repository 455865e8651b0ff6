//! The end state of a world as text, without what may differ between two good histories: uids,
//! times, versions, addresses, passwords, digests over uids.

use serde_json::{Map, Value};
use sim::world::World;

/// Kinds of the resources, and of the objects that belong to them.
const KINDS: [&str; 9] = [
    "Database",
    "ZookeeperCluster",
    "StatefulSet",
    "Service",
    "ConfigMap",
    "Secret",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
];

/// The end state of the namespace `default`.
pub(crate) fn of(world: &World) -> String {
    let mut lines = Vec::new();
    let uids = uids(world);
    for kind in KINDS {
        for object in world.list(kind, "default") {
            let text = format!("{:#}", settled(kind, object));
            lines.push(format!("{kind} {}", anonymous(&text, &uids)));
        }
    }
    lines.join("\n")
}

/// uids, system identifiers and revision names, which differ by chance.
fn uids(world: &World) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    for kind in KINDS {
        for object in world.list(kind, "default") {
            for (pointer, word) in [
                ("/metadata/uid", "UID"),
                ("/status/systemIdentifier", "SYSTEM"),
                ("/status/currentRevision", "REVISION"),
                ("/spec/clusterIP", "ADDRESS"),
                ("/spec/volumeName", "VOLUME"),
                ("/status/podIP", "ADDRESS"),
            ] {
                let value = super::text(&object, pointer);
                if value.len() > 5 {
                    found.push((value, word));
                }
            }
            let volumes = object["spec"]["volumes"].as_array().into_iter().flatten();
            let tokens = volumes.map(|volume| super::text(volume, "/name"));
            found
                .extend(tokens.filter(|n| n.starts_with("kube-api-access-")).map(|n| (n, "TOKEN")));
            let labels = &object["metadata"]["labels"];
            found.extend(
                labels["controller-revision-hash"].as_str().map(|r| (r.to_owned(), "REVISION")),
            );
        }
    }
    found
}

fn anonymous(text: &str, uids: &[(String, &str)]) -> String {
    uids.iter().fold(text.to_owned(), |text, (value, word)| text.replace(value.as_str(), word))
}

/// The object without times, versions, and what counts its own history.
fn settled(kind: &str, mut object: Value) -> Value {
    if kind == "Secret"
        && let Some(data) = object["data"].as_object_mut()
    {
        for value in data.values_mut() {
            *value = Value::from(value.as_str().map_or(0, str::len));
        }
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in ["resourceVersion", "creationTimestamp", "managedFields", "generation"] {
            metadata.remove(key);
        }
    }
    if kind == "Pod" {
        object["status"] = super::condition(&object, "Ready")["status"].clone();
    }
    without_times(object)
}

/// Drops members that hold times or count changes, and the words of a failure that quote the kubelet,
/// which says something else from one try to the next.
fn without_times(value: Value) -> Value {
    match value {
        Value::Object(mut members) => {
            let quotes = members.get("reason").is_some_and(|reason| reason == "UpgradeFailed");
            if quotes && members.get("type").is_some_and(|kind| kind != "Error") {
                members.remove("message");
            }
            let kept = members.into_iter().filter(|(key, value)| {
                let time = value
                    .as_str()
                    .is_some_and(|t| t.len() >= 20 && t.ends_with('Z') && t.contains('T'));
                let counted = ["observedGeneration", "collisionCount", "steadfast.dev/intent"];
                !time && !counted.contains(&key.as_str())
            });
            Value::Object(
                kept.map(|(key, value)| (key, without_times(value))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_times).collect()),
        other => other,
    }
}
