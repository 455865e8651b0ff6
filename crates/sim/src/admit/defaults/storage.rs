//! Defaults of claims, volumes and what provides them.

use serde_json::{Value, json};

use super::{inner, put};

/// PersistentVolumeClaim, also as a template of a StatefulSet.
pub(super) fn claim(object: &mut Value) {
    put(inner(object, "spec"), "volumeMode", json!("Filesystem"));
    put(inner(object, "status"), "phase", json!("Pending"));
}

/// PersistentVolume.
pub(super) fn volume(object: &mut Value) {
    put(inner(object, "status"), "phase", json!("Pending"));
    let spec = inner(object, "spec");
    put(spec, "persistentVolumeReclaimPolicy", json!("Retain"));
    put(spec, "volumeMode", json!("Filesystem"));
    if let Some(path) = super::present(spec, "hostPath")
        && path["type"].is_null()
    {
        path["type"] = json!("");
    }
}

/// StorageClass.
pub(super) fn class(object: &mut Value) {
    put(object, "reclaimPolicy", json!("Delete"));
    put(object, "volumeBindingMode", json!("Immediate"));
}

/// CSIDriver.
pub(super) fn driver(object: &mut Value) {
    let spec = inner(object, "spec");
    put(spec, "attachRequired", json!(true));
    put(spec, "podInfoOnMount", json!(false));
    put(spec, "storageCapacity", json!(false));
    put(spec, "fsGroupPolicy", json!("ReadWriteOnceWithFSType"));
    put(spec, "requiresRepublish", json!(false));
    put(spec, "seLinuxMount", json!(false));
    if spec["volumeLifecycleModes"].as_array().is_none_or(Vec::is_empty) {
        spec["volumeLifecycleModes"] = json!(["Persistent"]);
    }
}
