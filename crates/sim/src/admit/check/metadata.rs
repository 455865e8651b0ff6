//! Metadata, which all kinds share.

use serde_json::{Value, json};

use super::report::{Node, Report};
use super::text;
use crate::kind::Kind;

/// The size of all annotations together, in bytes.
const MOST_ANNOTATIONS: usize = 256 * 1024;
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// Checks name, labels, annotations, finalizers and owners.
pub(super) fn check(kind: &Kind, object: &Node<'_>, update: bool, report: &mut Report) {
    let metadata = object.field("metadata");
    if !update {
        names(kind, &metadata, report);
    }
    labels(&metadata.field("labels"), report);
    annotations(&metadata.field("annotations"), report);
    owners(&metadata.field("ownerReferences"), report);
    finalizers(kind, &metadata.field("finalizers"), report);
}

fn names(kind: &Kind, metadata: &Node<'_>, report: &mut Report) {
    let rule = |name: &str| name_rule(kind, name);
    if let Some(base) = metadata.some("generateName").filter(|base| !base.is_empty()) {
        // A generated name goes on, so that a hyphen at the end of its base is no end.
        let whole = format!("{}a", base.text().trim_end_matches('-'));
        for complaint in rule(&whole) {
            report.invalid(&base, &complaint);
        }
    }
    let name = metadata.field("name");
    if name.is_empty() {
        report.required(&name.path, "name or generateName is required");
    } else {
        report.text(&name, rule(name.text()));
    }
}

/// What names of a kind may be.
fn name_rule(kind: &Kind, name: &str) -> Vec<String> {
    let label = matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("", "Namespace" | "Service") | ("apps", "StatefulSet")
    );
    if kind.group == "rbac.authorization.k8s.io" {
        text::path_segment(name)
    } else if label {
        text::label(name)
    } else {
        text::subdomain(name)
    }
}

/// Labels, at any place in an object.
pub(super) fn labels(labels: &Node<'_>, report: &mut Report) {
    for (key, value) in labels.entries() {
        for complaint in text::qualified(key) {
            report.invalid_as(&labels.path, &json!(key), &complaint);
        }
        for complaint in text::label_value(value.as_str().unwrap_or_default()) {
            report.invalid_as(&labels.path, value, &complaint);
        }
    }
}

/// Annotations, at any place in an object.
pub(super) fn annotations(annotations: &Node<'_>, report: &mut Report) {
    let mut size = 0;
    for (key, value) in annotations.entries() {
        for complaint in text::qualified(&key.to_lowercase()) {
            report.invalid_as(&annotations.path, &json!(key), &complaint);
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MOST_ANNOTATIONS {
        report.too_long(&annotations.path, MOST_ANNOTATIONS);
    }
}

fn owners(owners: &Node<'_>, report: &mut Report) {
    let at = |field: &str| format!("{}.{field}", owners.path);
    let mut controllers: Vec<String> = Vec::new();
    for owner in owners.items() {
        let version = owner.field("apiVersion");
        let well_formed = !version.is_empty() && version.text().matches('/').count() < 2;
        if !well_formed {
            report.invalid_as(&at("apiVersion"), version.value, "version must not be empty");
        }
        for field in ["kind", "name", "uid"] {
            if owner.field(field).is_empty() {
                report.invalid_as(&at(field), &json!(""), "must not be empty");
            }
        }
        if version.text() == "v1" && owner.field("kind").text() == "Event" {
            let shown = owner_text(owner.value);
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            report.invalid_struct(&owners.path, &shown, detail);
        }
        if owner.value["controller"] == true {
            let name = |field: &str| owner.field(field).text();
            controllers.push(format!("{}/{}", name("kind"), name("name")));
        }
    }
    if let [first, .., last] = controllers.as_slice() {
        let all: Vec<String> = owners.items().map(|owner| owner_text(owner.value)).collect();
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {last}"
        );
        report.invalid_struct(&owners.path, &format!("[{}]", all.join(",")), &detail);
    }
}

/// An owner reference with its fields in the server's order.
fn owner_text(owner: &Value) -> String {
    let fields: Vec<String> =
        ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"]
            .iter()
            .filter_map(|field| Some(format!("{field:?}:{}", owner.get(field)?)))
            .collect();
    format!("{{{}}}", fields.join(","))
}

fn finalizers(kind: &Kind, finalizers: &Node<'_>, report: &mut Report) {
    // Groups that live outside the core validate names of finalizers less strictly.
    let strict = !kind.custom
        && !matches!(
            kind.group.as_str(),
            "apiextensions.k8s.io" | "admissionregistration.k8s.io" | "rbac.authorization.k8s.io"
        );
    for finalizer in finalizers.items() {
        let name = finalizer.text();
        for complaint in text::qualified(name) {
            report.invalid_as(&finalizers.path, finalizer.value, &complaint);
        }
        if strict && !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            report.invalid(&finalizer, detail);
        }
    }
    let has = |name: &str| finalizers.items().any(|finalizer| finalizer.text() == name);
    if has("orphan") && has("foregroundDeletion") {
        report.invalid(finalizers, "finalizer orphan and foregroundDeletion cannot be both set");
    }
}
