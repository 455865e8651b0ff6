//! ConfigMaps and Secrets.

use serde_json::Value;

use super::report::{Node, Report};
use super::text;

/// The size of all values together, in bytes.
const MOST: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";

/// ConfigMap.
pub(super) fn config_map(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    frozen(object, old, &["data", "binaryData"], report);
    let (data, binary) = (object.field("data"), object.field("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        keys(&data, key, report);
        if binary.value.get(key).is_some() {
            report.invalid_as(
                &data.key(key).path,
                &key.into(),
                "duplicate of key present in binaryData",
            );
        }
        size += value.as_str().unwrap_or_default().len();
    }
    for (key, value) in binary.entries() {
        keys(&binary, key, report);
        size += decoded(value);
    }
    if size > MOST {
        report.too_long("[]", MOST);
    }
}

/// Secret.
pub(super) fn secret(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    if let Some(old) = old
        && old["type"] != object.value["type"]
    {
        report.invalid(&object.field("type"), "field is immutable");
    }
    frozen(object, old, &["data"], report);
    let data = object.field("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        keys(&data, key, report);
        size += decoded(value);
    }
    if size > MOST {
        report.too_long(&data.path, MOST);
    }
    needed(object, &data, report);
}

/// The keys that a type of Secret must have.
fn needed(object: &Node<'_>, data: &Node<'_>, report: &mut Report) {
    let has = |key: &str| data.value.get(key).is_some();
    let wanted: &[&str] = match object.field("type").text() {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            &["username", "password"]
        }
        "kubernetes.io/service-account-token" => {
            let annotations = object.at("metadata.annotations");
            if annotations.key("kubernetes.io/service-account.name").is_empty() {
                report.required(&annotations.key("kubernetes.io/service-account.name").path, "");
            }
            &[]
        }
        _ => &[],
    };
    for key in wanted.iter().filter(|key| !has(key)) {
        report.required(&data.key(key).path, "");
    }
}

fn keys(map: &Node<'_>, key: &str, report: &mut Report) {
    for complaint in text::config_key(key) {
        report.invalid_as(&map.key(key).path, &key.into(), &complaint);
    }
}

/// The size of a base64 text once decoded.
fn decoded(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|b| *b == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

/// An object marked immutable stays so, and its data too.
fn frozen(object: &Node<'_>, old: Option<&Value>, fields: &[&str], report: &mut Report) {
    let Some(old) = old.filter(|old| old["immutable"] == true) else { return };
    if object.value["immutable"] != true {
        report.forbidden("immutable", FROZEN);
    }
    for field in fields {
        if old[*field] != object.value[*field] {
            report.forbidden(field, FROZEN);
        }
    }
}
