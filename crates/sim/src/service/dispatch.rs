//! Which part of the API answers a call.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{collection, object, pod, review};
use crate::cluster::{Core, Sub};
use crate::discovery;
use crate::faults::ClientId;
use crate::kind::Kind;
use crate::openapi;
use crate::reply::Reply;
use crate::request::{Call, Place};
use crate::status::Failure;
use crate::store::Key;
use crate::watch::Disturbance;

/// What faults do to a request that is carried out all the same.
#[derive(Default)]
pub(super) struct Mood {
    pub(super) stale: u64,
    pub(super) gone: bool,
    pub(super) disturbance: Disturbance,
}

/// A call whose path names a served kind.
pub(super) struct Served<'a> {
    pub(super) call: &'a Call,
    pub(super) place: &'a Place,
    pub(super) kind: Arc<Kind>,
    pub(super) key: Key,
    pub(super) client: ClientId,
    pub(super) user: String,
}

/// Carries a call out.
pub(super) fn serve(
    core: &mut Core,
    call: &Call,
    client: ClientId,
    mood: &Mood,
) -> Result<Reply, Failure> {
    let Some(place) = &call.place else { return outside(core, call) };
    let user = core.faults.client_name(client).to_owned();
    if let Some(reply) = review::serve(core, call, place, &user)? {
        return Ok(reply);
    }
    if !core.kinds.all().any(|kind| kind.group == place.group) {
        return Ok(Reply::NoPage);
    }
    let kind = core
        .kinds
        .at(&place.group, &place.version, &place.plural)
        .ok_or_else(Failure::no_such_resource)?;
    if kind.custom && !kind.namespaced && !place.namespace.is_empty() {
        return Ok(Reply::NoPage);
    }
    if !kind.namespaced && !place.namespace.is_empty() {
        return Err(Failure::no_such_resource());
    }
    let key = kind.key(&place.namespace, &place.name);
    let served = Served { call, place, kind, key, client, user };
    if place.name.is_empty() {
        return collection::serve(core, &served, mood);
    }
    if served.kind.namespaced && place.namespace.is_empty() {
        return Err(Failure::no_such_resource());
    }
    match subresource(&served)? {
        Part::Object(sub) => object::serve(core, &served, sub, mood),
        Part::Pod => pod::serve(core, &served),
    }
}

enum Part {
    Object(Option<Sub>),
    Pod,
}

fn subresource(served: &Served<'_>) -> Result<Part, Failure> {
    let kind = &served.kind;
    let pod = kind.is("", "Pod");
    match served.place.subresource.as_str() {
        "" => Ok(Part::Object(None)),
        "status" if kind.status => Ok(Part::Object(Some(Sub::Status))),
        "scale" if kind.scale.is_some() => Ok(Part::Object(Some(Sub::Scale))),
        "finalize" if kind.is("", "Namespace") => Ok(Part::Object(Some(Sub::Finalize))),
        "resize" if pod => Ok(Part::Object(Some(Sub::Resize))),
        "eviction" | "binding" if pod => Ok(Part::Pod),
        "log" | "attach" | "portforward" | "proxy" if pod => {
            Err(Failure::not_implemented(&format!("pods/{}", served.place.subresource)))
        }
        _ if kind.custom => Err(Failure::not_found(kind, &served.place.name)),
        _ => Err(Failure::no_such_resource()),
    }
}

/// Paths that name no object: discovery, OpenAPI, health.
fn outside(core: &Core, call: &Call) -> Result<Reply, Failure> {
    if call.method != http::Method::GET {
        return Err(Failure::method_not_allowed());
    }
    match call.path.trim_end_matches('/') {
        "/healthz" | "/livez" | "/readyz" => Ok(Reply::Text("ok".into())),
        "/version" => Ok(Reply::ok(version())),
        path if path.starts_with("/openapi/v3") => openapi::serve(core, path),
        path => discovery::serve(&core.kinds, path, &call.accept),
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "simulated",
        "gitTreeState": "clean", "buildDate": "2026-01-01T00:00:00Z", "goVersion": "none",
        "compiler": "rustc", "platform": "linux/amd64",
    })
}

/// `plural.group` of a path.
pub(super) fn resource(place: &Place) -> String {
    if place.group.is_empty() {
        place.plural.clone()
    } else {
        format!("{}.{}", place.plural, place.group)
    }
}

/// A 403 for what a path names.
pub(super) fn denial(call: &Call, message: &str) -> Failure {
    let place = call.place.clone().unwrap_or_default();
    let name = match place.name.as_str() {
        "" => String::new(),
        name => format!(" \"{name}\""),
    };
    Failure::new(403, "Forbidden", format!("{}{name} is forbidden: {message}", resource(&place)))
        .with(json!({ "name": place.name, "group": place.group, "kind": place.plural }))
}
