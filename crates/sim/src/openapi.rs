//! OpenAPI v3 as far as kubectl needs it to apply: paths with their kinds and parameters.
//!
//! `kubectl explain` has something to show for custom kinds only: the schemas of built-in ones are
//! named but not described.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::cluster::Core;
use crate::kind::Kind;
use crate::reply::Reply;
use crate::status::Failure;
use crate::store::Key;

fn folder(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("api/{}", kind.version)
    } else {
        format!("apis/{}/{}", kind.group, kind.version)
    }
}

/// Answers `/openapi/v3` and the documents below it.
pub(crate) fn serve(core: &Core, path: &str) -> Result<Reply, Failure> {
    let kinds = &core.kinds;
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
        schemas.insert(schema_name(kind), schema(core, kind));
    }
    if paths.is_empty() {
        return Err(Failure::no_such_resource());
    }
    Ok(Reply::ok(json!({
        "openapi": "3.0.0", "info": { "title": "Kubernetes", "version": "v1.36.0" },
        "paths": paths, "components": { "schemas": schemas },
    })))
}

/// A kind's schema: a custom kind's own one, of a built-in kind no more than its name.
fn schema(core: &Core, kind: &Kind) -> Value {
    let mut schema = json!({ "type": "object" });
    let name = format!("{}.{}", kind.plural, kind.group);
    let key = Key::new("apiextensions.k8s.io", "customresourcedefinitions", "", &name);
    if let Some(definition) = core.store.get(&key).filter(|_| kind.custom) {
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        for version in versions.filter(|version| version["name"] == kind.version.as_str()) {
            schema.clone_from(&version["schema"]["openAPIV3Schema"]);
        }
        let text = json!({ "type": "string" });
        for (field, shape) in
            [("apiVersion", &text), ("kind", &text), ("metadata", &json!({ "type": "object" }))]
        {
            if schema["properties"][field].is_null() {
                schema["properties"][field] = shape.clone();
            }
        }
    }
    schema["x-kubernetes-group-version-kind"] =
        json!([{ "group": kind.group, "version": kind.version, "kind": kind.kind }]);
    schema
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
