//! OpenAPI v3 as far as kubectl needs it to apply: paths with their kinds and parameters.
//!
//! Schemas are not described, so `kubectl explain` has nothing to show.

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
        return Ok(Reply::ok(json!({ "paths": paths })));
    }
    let mut paths = Map::new();
    for kind in kinds.all().filter(|kind| folder(kind) == rest) {
        let place = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
        let address = format!("/{rest}/{place}{}", kind.plural);
        paths.insert(format!("{address}/{{name}}"), operations(kind, &["patch", "put"]));
        paths.insert(address, operations(kind, &["post"]));
    }
    if paths.is_empty() {
        return Err(Failure::no_such_resource());
    }
    Ok(Reply::ok(json!({
        "openapi": "3.0.0", "info": { "title": "Kubernetes", "version": "v1.36.0" },
        "paths": paths, "components": { "schemas": {} },
    })))
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
