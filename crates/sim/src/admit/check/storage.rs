//! Claims, volumes and storage classes.

use serde_json::Value;

use super::report::{Node, Report};
use super::{selector, text};
use crate::quantity::Quantity;

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const FIXED: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/// PersistentVolumeClaim.
pub(super) fn claim(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    let spec = object.field("spec");
    claim_spec(&spec, report);
    if let Some(old) = old {
        claim_update(old, &spec, report);
    }
}

/// The spec of a claim, also in a template.
pub(super) fn claim_spec(spec: &Node<'_>, report: &mut Report) {
    let modes = spec.field("accessModes");
    if modes.is_empty() {
        report.required(&modes.path, "at least 1 access mode is required");
    }
    access_modes(&modes, report);
    selector::check(&spec.field("selector"), report);
    let size = spec.at("resources.requests.storage");
    let path = format!("{}[storage]", spec.field("resources").path);
    if size.value.is_null() {
        report.required(&path, "");
    } else if Quantity::parse(size.text()).is_ok_and(|size| size.is_zero() || size.is_negative()) {
        report.invalid_as(&path, size.value, "must be greater than zero");
    }
    let class = spec.field("storageClassName");
    if !class.is_empty() {
        report.text(&class, text::subdomain(class.text()));
    }
    report.one_of_if_set(&spec.field("volumeMode"), &["Block", "Filesystem"]);
}

fn access_modes(modes: &Node<'_>, report: &mut Report) {
    for mode in modes.items().filter(|mode| !MODES.contains(&mode.text())) {
        report.unsupported(&modes.path, &mode.value.to_string(), &MODES);
    }
    let alone = modes.items().any(|mode| mode.text() == "ReadWriteOncePod");
    if alone && modes.items().count() > 1 {
        report.forbidden(&modes.path, "may not use ReadWriteOncePod with other access modes");
    }
}

/// A bound claim may grow; a claim that has no volume yet may be given one.
fn claim_update(old: &Value, spec: &Node<'_>, report: &mut Report) {
    let bound = old["status"]["phase"] == "Bound";
    let before = &old["spec"];
    let fixed = |spec: &Value| {
        let mut spec = spec.clone();
        if before["volumeName"].is_null() {
            spec["volumeName"] = Value::Null;
        }
        if before["storageClassName"].is_null() {
            spec["storageClassName"] = Value::Null;
        }
        if bound {
            spec["resources"]["requests"] = Value::Null;
            spec["volumeAttributesClassName"] = Value::Null;
        }
        // The server compares amounts, not their spelling.
        if let Some(Value::Object(requests)) = spec.pointer_mut("/resources/requests") {
            for text in requests.values_mut() {
                let amount = text.as_str().and_then(|text| Quantity::parse(text).ok());
                *text = amount
                    .and_then(|amount| amount.scaled(-3))
                    .map(|amount| amount.to_string())
                    .into();
            }
        }
        spec
    };
    if fixed(before) != fixed(spec.value) {
        report.forbidden(&spec.path, FIXED);
        return;
    }
    let size = |spec: &Value| {
        Quantity::parse(spec["resources"]["requests"]["storage"].as_str().unwrap_or_default()).ok()
    };
    if let (Some(was), Some(wanted)) = (size(before), size(spec.value))
        && wanted < was
    {
        let path = format!("{}.resources.requests.storage", spec.path);
        report.forbidden(&path, "field can not be less than status.capacity");
    }
}

/// PersistentVolume.
pub(super) fn volume(object: &Node<'_>, report: &mut Report) {
    let spec = object.field("spec");
    let modes = spec.field("accessModes");
    if modes.is_empty() {
        report.required(&modes.path, "");
    }
    access_modes(&modes, report);
    let capacity = spec.field("capacity");
    if capacity.is_empty() {
        report.required(&capacity.path, "");
        report.unsupported(&capacity.path, "null", &["storage"]);
    }
    let plain = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    if spec.entries().all(|(field, _)| plain.contains(&field)) {
        report.required(&spec.path, "must specify a volume type");
    }
}

/// StorageClass.
pub(super) fn class(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    let provisioner = object.field("provisioner");
    if provisioner.is_empty() {
        report.required(&provisioner.path, "");
    } else {
        let lower = provisioner.text().to_lowercase();
        for complaint in text::qualified(&lower) {
            report.invalid_as(&provisioner.path, &Value::from(lower.as_str()), &complaint);
        }
    }
    report.one_of(&object.field("reclaimPolicy"), &["Delete", "Retain"]);
    report.one_of(&object.field("volumeBindingMode"), &["Immediate", "WaitForFirstConsumer"]);
    let Some(old) = old else { return };
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        let node = object.field(field);
        let empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
        if old[field] != *node.value && !(old[field].is_null() && empty(node.value)) {
            report.invalid(&node, "field is immutable");
        }
    }
}
