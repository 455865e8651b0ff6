//! OpenAPI v3 as far as kubectl needs it to apply: paths with their kinds and parameters.
//!
//! Schemas are named but not described, so `kubectl explain` has little to show.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::kind::{Kind, Kinds};
use crate::reply::Reply;
use crate::status::Failure;

fn folder(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("api/{}", kind.version)
    } else {
        format!("apis/{}/{}", kind.group, kind.version)
    }
}

/// Answers `/openapi/v3` and the documents below it.
pub(crate) fn serve(kinds: &Kinds, path: &str) -> Result<Reply, Failure> {
    let rest = path.trim_start_matches("/openapi/v3").trim_matches('/');
    if rest.is_empty() {
        let folders: BTreeSet<String> = kinds.all().map(|kind| folder(kind)).collect();
        let paths: Map<String, Value> = folders
            .into_iter()
            .map(|folder| {
                let address = format!("/openapi/v3/{folder}?hash=simulated");
                (folder, json!({ "serverRelativeURL": address }))
            })
            .collect();
        // The real server sends this one document without saying that it is JSON.
        return Ok(Reply::Typed {
            value: json!({ "paths": paths }),
            content_type: "text/plain; charset=utf-8".to_owned(),
        });
    }
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for kind in kinds.all().filter(|kind| folder(kind) == rest) {
        let place = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
        let address = format!("/{rest}/{place}{}", kind.plural);
        paths.insert(format!("{address}/{{name}}"), operations(kind, &["patch", "put"]));
        paths.insert(address, operations(kind, &["post"]));
        let named = json!({ "group": kind.group, "version": kind.version, "kind": kind.kind });
        schemas.insert(
            schema_name(kind),
            json!({ "type": "object", "x-kubernetes-group-version-kind": [named] }),
        );
    }
    if paths.is_empty() {
        return Err(Failure::no_such_resource());
    }
    Ok(Reply::ok(json!({
        "openapi": "3.0.0", "info": { "title": "Kubernetes", "version": "v1.36.0" },
        "paths": paths, "components": { "schemas": schemas },
    })))
}

/// Name of a kind's schema: Go packages for built-in kinds, reversed domains for custom ones.
fn schema_name(kind: &Kind) -> String {
    if kind.custom {
        let mut parts: Vec<&str> = kind.group.split('.').collect();
        parts.reverse();
        return format!("{}.{}.{}", parts.join("."), kind.version, kind.kind);
    }
    let package = match kind.group.split('.').next() {
        None | Some("") => "core",
        Some(first) => first,
    };
    format!("io.k8s.api.{package}.{}.{}", kind.version, kind.kind)
}

fn operations(kind: &Kind, methods: &[&str]) -> Value {
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"]
        .iter()
        .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } }))
        .collect();
    let operation = json!({
        "parameters": parameters, "responses": {},
        "x-kubernetes-group-version-kind": {
            "group": kind.group, "version": kind.version, "kind": kind.kind,
        },
    });
    methods
        .iter()
        .map(|method| ((*method).to_owned(), operation.clone()))
        .collect::<Map<_, _>>()
        .into()
}
