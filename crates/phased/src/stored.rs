//! How the API server stores what it is sent: merge keys, quantities, values that it drops.
//!
//! Knowledge of Kubernetes' built-in types, by the names of their fields; the source is the API's
//! OpenAPI (`x-kubernetes-list-map-keys`, `x-kubernetes-list-type`) and the `omitempty` marks of
//! its Go types. Must not compare anything itself.

use serde_json::Value;

use crate::compare::{Path, Segment};

/// How a list of objects is matched with the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// By the values of these fields; items that others add are theirs.
    Keys(&'static [&'static str]),
    /// Each declared item must be there, wherever.
    Anywhere,
    /// Item by item, with the same length.
    ByPlace,
}

/// Lists of objects that are matched by keys wherever they occur.
const KEYED: [(&str, &[&str]); 17] = [
    ("conditions", &["type"]),
    ("containers", &["name"]),
    ("env", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("hostAliases", &["ip"]),
    ("imagePullSecrets", &["name"]),
    ("initContainers", &["name"]),
    ("ownerReferences", &["uid"]),
    ("resourceClaims", &["name"]),
    ("claims", &["name"]),
    ("schedulingGates", &["name"]),
    ("secrets", &["name"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("volumeDevices", &["devicePath"]),
    ("volumeMounts", &["mountPath"]),
    ("volumes", &["name"]),
    ("webhooks", &["name"]),
];

/// How the list at `path` is matched.
pub fn matching(path: &Path) -> Matching {
    let names = fields(path);
    match names.as_slice() {
        ["metadata", "finalizers"] | [.., "tolerations"] => Matching::Anywhere,
        [.., "containers" | "initContainers" | "ephemeralContainers", "ports"] => {
            Matching::Keys(&["containerPort", "protocol"])
        }
        ["spec", "ports"] => Matching::Keys(&["port", "protocol"]),
        [.., last] => KEYED
            .iter()
            .find(|(name, _)| name == last)
            .map_or(Matching::ByPlace, |(_, keys)| Matching::Keys(keys)),
        [] => Matching::ByPlace,
    }
}

/// The values of an item's keys, with the server's defaults; `None` when a key is missing.
pub fn key_of(item: &Value, keys: &[&'static str]) -> Option<Vec<(&'static str, Value)>> {
    keys.iter()
        .map(|key| {
            let value = item.get(key).filter(|v| !v.is_null()).cloned();
            let default = (*key == "protocol").then(|| Value::from("TCP"));
            value.or(default).map(|v| (*key, v))
        })
        .collect()
}

/// Whether the value at `path` is a quantity.
pub fn is_quantity(path: &Path) -> bool {
    match fields(path).as_slice() {
        [.., "emptyDir", "sizeLimit"] | [.., "resourceFieldRef", "divisor"] => true,
        [.., parent, _] => matches!(
            *parent,
            "limits"
                | "requests"
                | "capacity"
                | "allocatable"
                | "allocatedResources"
                | "hard"
                | "overhead"
        ),
        _ => false,
    }
}

/// Whether the map at `path` is in force only as a whole: one more key changes what it means.
pub(crate) fn is_whole_map(path: &Path) -> bool {
    matches!(fields(path).as_slice(), ["spec", "selector"] | [.., "matchLabels"])
}

/// Whether the server fills the field at `path` when it is declared empty.
pub(crate) fn is_filled_by_server(path: &Path) -> bool {
    matches!(
        fields(path).as_slice(),
        ["spec", "clusterIP" | "clusterIPs" | "ipFamilies" | "ipFamilyPolicy"]
    )
}

/// Whether the server stores nothing for `value` at `path`, so that its absence is no difference.
pub fn is_dropped(value: &Value, path: &Path) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value && is_dropped_when_zero(path),
        Value::Number(number) => number.as_i64() == Some(0) && is_dropped_when_zero(path),
        Value::String(text) => text.is_empty() && !keeps_empty_text(path),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) if means_by_presence(path) => false,
        Value::Object(map) => map.iter().all(|(key, v)| is_dropped(v, &path.field(key))),
    }
}

/// Plain booleans and numbers: their zero is not stored. Where the API uses a pointer (such as
/// `automountServiceAccountToken`), a declared `false` is stored, and its absence is somebody's
/// change.
fn is_dropped_when_zero(path: &Path) -> bool {
    match fields(path).last() {
        Some(name) => matches!(
            *name,
            "hostIPC"
                | "hostNetwork"
                | "hostPID"
                | "hostPort"
                | "healthCheckNodePort"
                | "initialDelaySeconds"
                | "minReadySeconds"
                | "nodePort"
                | "paused"
                | "publishNotReadyAddresses"
                | "readOnly"
                | "stdin"
                | "stdinOnce"
                | "tty"
                | "unschedulable"
        ),
        None => false,
    }
}

/// Objects whose presence alone has a meaning: stored even when they are empty.
fn means_by_presence(path: &Path) -> bool {
    matches!(fields(path).last(), Some(&"emptyDir" | &"podSelector" | &"namespaceSelector"))
}

/// Texts that are stored even when they are empty: values of plain maps, and a storage class,
/// whose empty name forbids the default one.
fn keeps_empty_text(path: &Path) -> bool {
    match fields(path).as_slice() {
        [.., "storageClassName"] => true,
        [.., parent, _] => matches!(
            *parent,
            "annotations"
                | "binaryData"
                | "data"
                | "labels"
                | "matchLabels"
                | "nodeSelector"
                | "parameters"
                | "selector"
                | "volumeAttributes"
        ),
        _ => false,
    }
}

/// The names of the fields on a path, without places in lists.
fn fields(path: &Path) -> Vec<&str> {
    path.0
        .iter()
        .filter_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Index(_) | Segment::Absent(_) => None,
        })
        .collect()
}
