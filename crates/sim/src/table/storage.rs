//! Claims, volumes, storage classes, drivers.

use serde_json::{Value, json};

use super::{Printer, age_of, each, name, text, text_or};

fn modes(object: &Value, pointer: &str) -> String {
    let short: Vec<&str> = each(object, pointer)
        .filter_map(Value::as_str)
        .map(|mode| match mode {
            "ReadWriteOnce" => "RWO",
            "ReadOnlyMany" => "ROX",
            "ReadWriteMany" => "RWX",
            "ReadWriteOncePod" => "RWOP",
            other => other,
        })
        .collect();
    short.join(",")
}

pub(super) const CLAIMS: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Volume", "string", 0),
        ("Capacity", "string", 0),
        ("Access Modes", "string", 0),
        ("StorageClass", "string", 0),
        ("VolumeAttributesClass", "string", 0),
        ("Age", "string", 0),
        ("VolumeMode", "string", 1),
    ],
    cells: |claim, now| {
        let deleting = !text(claim, "/metadata/deletionTimestamp").is_empty();
        let status = if deleting { "Terminating" } else { text(claim, "/status/phase") };
        let bound = !text(claim, "/spec/volumeName").is_empty();
        let shown = |pointer: &str| if bound { text(claim, pointer) } else { "" };
        vec![
            name(claim),
            json!(status),
            json!(text(claim, "/spec/volumeName")),
            json!(shown("/status/capacity/storage")),
            json!(if bound { modes(claim, "/status/accessModes") } else { String::new() }),
            json!(text(claim, "/spec/storageClassName")),
            json!(text_or(claim, "/spec/volumeAttributesClassName", "<unset>")),
            age_of(claim, now),
            json!(text_or(claim, "/spec/volumeMode", "<unset>")),
        ]
    },
};

pub(super) const VOLUMES: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Capacity", "string", 0),
        ("Access Modes", "string", 0),
        ("Reclaim Policy", "string", 0),
        ("Status", "string", 0),
        ("Claim", "string", 0),
        ("StorageClass", "string", 0),
        ("VolumeAttributesClass", "string", 0),
        ("Reason", "string", 0),
        ("Age", "string", 0),
        ("VolumeMode", "string", 1),
    ],
    cells: |volume, now| {
        let claim = match text(volume, "/spec/claimRef/name") {
            "" => String::new(),
            claimed => format!("{}/{claimed}", text(volume, "/spec/claimRef/namespace")),
        };
        let deleting = !text(volume, "/metadata/deletionTimestamp").is_empty();
        vec![
            name(volume),
            json!(text(volume, "/spec/capacity/storage")),
            json!(modes(volume, "/spec/accessModes")),
            json!(text(volume, "/spec/persistentVolumeReclaimPolicy")),
            json!(if deleting { "Terminating" } else { text(volume, "/status/phase") }),
            json!(claim),
            json!(text(volume, "/spec/storageClassName")),
            json!(text_or(volume, "/spec/volumeAttributesClassName", "<unset>")),
            json!(text(volume, "/status/reason")),
            age_of(volume, now),
            json!(text_or(volume, "/spec/volumeMode", "<unset>")),
        ]
    },
};

pub(super) const CLASSES: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Provisioner", "string", 0),
        ("ReclaimPolicy", "string", 0),
        ("VolumeBindingMode", "string", 0),
        ("AllowVolumeExpansion", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |class, now| {
        let annotation =
            &class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"];
        let mut title = text(class, "/metadata/name").to_owned();
        if annotation == "true" {
            title.push_str(" (default)");
        }
        vec![
            json!(title),
            json!(text(class, "/provisioner")),
            json!(text_or(class, "/reclaimPolicy", "Delete")),
            json!(text_or(class, "/volumeBindingMode", "Immediate")),
            json!(class["allowVolumeExpansion"].as_bool().unwrap_or(false)),
            age_of(class, now),
        ]
    },
};

pub(super) const DRIVERS: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("AttachRequired", "boolean", 0),
        ("PodInfoOnMount", "boolean", 0),
        ("StorageCapacity", "boolean", 0),
        ("TokenRequests", "string", 0),
        ("RequiresRepublish", "boolean", 0),
        ("Modes", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |driver, now| {
        let flag =
            |field: &str, default: bool| json!(driver["spec"][field].as_bool().unwrap_or(default));
        let modes: Vec<&str> =
            each(driver, "/spec/volumeLifecycleModes").filter_map(Value::as_str).collect();
        vec![
            name(driver),
            flag("attachRequired", true),
            flag("podInfoOnMount", false),
            flag("storageCapacity", false),
            json!("<unset>"),
            flag("requiresRepublish", false),
            json!(if modes.is_empty() { "Persistent".to_owned() } else { modes.join(",") }),
            age_of(driver, now),
        ]
    },
};
