//! `meta.k8s.io/v1` Tables: what `kubectl get` prints.
//!
//! Columns of built-in kinds are the real server's; custom kinds bring their own.

mod age;
mod cluster;
mod path;
mod pod;
mod storage;
mod traffic;
mod workload;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kind::{Column, Kind};
use crate::reply::row_object;
use crate::request::RowObject;

/// Heading, type and priority of a column.
type Heading = (&'static str, &'static str, u8);

/// How a built-in kind is printed.
#[derive(Clone, Copy)]
struct Printer {
    headings: &'static [Heading],
    cells: fn(&Value, Timestamp) -> Vec<Value>,
}

/// The table of `objects`.
pub(crate) fn of(kind: &Kind, objects: &[Value], row: RowObject, now: Timestamp) -> Value {
    let (columns, rows) = if kind.custom {
        custom(kind, objects, row, now)
    } else {
        built_in(kind, objects, row, now)
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
        "columnDefinitions": columns, "rows": rows,
    })
}

fn built_in(
    kind: &Kind,
    objects: &[Value],
    row: RowObject,
    now: Timestamp,
) -> (Vec<Value>, Vec<Value>) {
    let printer = printer(kind);
    let columns = printer
        .headings
        .iter()
        .map(|(name, type_, priority)| definition(name, type_, *priority == 1))
        .collect();
    let rows =
        objects.iter().map(|object| line((printer.cells)(object, now), row, object)).collect();
    (columns, rows)
}

fn definition(name: &str, type_: &str, wide: bool) -> Value {
    let format = if name == "Name" { "name" } else { "" };
    json!({
        "name": name, "type": type_, "format": format, "description": name,
        "priority": i32::from(wide),
    })
}

fn line(cells: Vec<Value>, row: RowObject, object: &Value) -> Value {
    let mut line = json!({ "cells": cells });
    if let Some(object) = row_object(row, object) {
        line["object"] = object;
    }
    line
}

fn custom(
    kind: &Kind,
    objects: &[Value],
    row: RowObject,
    now: Timestamp,
) -> (Vec<Value>, Vec<Value>) {
    let mut columns = vec![definition("Name", "string", false)];
    let age = Column {
        name: "Age".into(),
        kind: "date".into(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: ".metadata.creationTimestamp".into(),
    };
    let shown: Vec<&Column> =
        if kind.columns.is_empty() { vec![&age] } else { kind.columns.iter().collect() };
    columns.extend(shown.iter().map(|column| {
        let description = if column.description.is_empty() {
            format!("Custom resource definition column (in JSONPath format): {}", column.json_path)
        } else {
            column.description.clone()
        };
        json!({
            "name": column.name, "type": column.kind, "format": column.format,
            "description": description, "priority": column.priority,
        })
    }));
    let rows = objects
        .iter()
        .map(|object| {
            let mut cells = vec![object["metadata"]["name"].clone()];
            cells.extend(shown.iter().map(|column| custom_cell(column, object, now)));
            line(cells, row, object)
        })
        .collect();
    (columns, rows)
}

fn custom_cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    let Some(found) = path::first(object, &column.json_path) else { return Value::Null };
    match column.kind.as_str() {
        "date" => json!(age::since(found.as_str().unwrap_or(""), now)),
        "string" => match found {
            Value::String(text) => json!(text),
            Value::Null => Value::Null,
            other => json!(other.to_string()),
        },
        _ => found,
    }
}

fn printer(kind: &Kind) -> Printer {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") => pod::PODS,
        ("apps", "statefulsets") => workload::STATEFUL_SETS,
        ("apps", "deployments") => workload::DEPLOYMENTS,
        ("apps", "daemonsets") => workload::DAEMON_SETS,
        ("apps", "replicasets") => workload::REPLICA_SETS,
        ("apps", "controllerrevisions") => workload::REVISIONS,
        ("policy", "poddisruptionbudgets") => workload::BUDGETS,
        ("", "services") => traffic::SERVICES,
        ("discovery.k8s.io", "endpointslices") => traffic::SLICES,
        ("networking.k8s.io", "networkpolicies") => traffic::POLICIES,
        ("", "persistentvolumeclaims") => storage::CLAIMS,
        ("", "persistentvolumes") => storage::VOLUMES,
        ("storage.k8s.io", "storageclasses") => storage::CLASSES,
        ("storage.k8s.io", "csidrivers") => storage::DRIVERS,
        ("", "configmaps") => cluster::CONFIG_MAPS,
        ("", "secrets") => cluster::SECRETS,
        ("", "serviceaccounts") => cluster::ACCOUNTS,
        ("", "namespaces") => cluster::NAMESPACES,
        ("", "nodes") => cluster::NODES,
        ("" | "events.k8s.io", "events") => cluster::EVENTS,
        ("", "resourcequotas") => cluster::QUOTAS,
        ("coordination.k8s.io", "leases") => cluster::LEASES,
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => cluster::BINDINGS,
        _ => cluster::OTHERS,
    }
}

/// A text at a JSON pointer; empty when absent.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// A text at a JSON pointer, or what kubectl shows for nothing.
fn text_or<'a>(object: &'a Value, pointer: &str, nothing: &'a str) -> &'a str {
    match text(object, pointer) {
        "" => nothing,
        found => found,
    }
}

/// A number at a JSON pointer; 0 when absent.
fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// The name cell.
fn name(object: &Value) -> Value {
    object["metadata"]["name"].clone()
}

/// The age cell.
fn age_of(object: &Value, now: Timestamp) -> Value {
    json!(age::since(text(object, "/metadata/creationTimestamp"), now))
}

/// The entries of a list at a JSON pointer.
fn each<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// One field of each entry of a list, joined by commas.
fn joined(object: &Value, pointer: &str, field: &str) -> String {
    let texts: Vec<&str> =
        each(object, pointer).map(|entry| entry[field].as_str().unwrap_or("")).collect();
    texts.join(",")
}

/// Names and images of a pod template's containers.
fn containers(object: &Value) -> [Value; 2] {
    let list = "/spec/template/spec/containers";
    [json!(joined(object, list, "name")), json!(joined(object, list, "image"))]
}

/// A label selector or a plain map as kubectl shows it.
fn selector(value: Option<&Value>) -> String {
    let text = match value {
        Some(value)
            if value.get("matchLabels").is_some() || value.get("matchExpressions").is_some() =>
        {
            crate::selector::labels_text(value)
        }
        Some(plain) => crate::selector::labels_text(&json!({ "matchLabels": plain })),
        None => String::new(),
    };
    if text.is_empty() { "<none>".to_owned() } else { text }
}
