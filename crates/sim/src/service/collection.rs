//! Calls on all objects of a kind: list, watch, create, deletecollection.

use std::time::Duration;

use serde_json::json;

use super::dispatch::{Mood, Served};
use super::object;
use crate::cluster::Core;
use crate::reply::{self, Reply};
use crate::selector::{Fields, Labels};
use crate::status::Failure;
use crate::verbs::{Listing, Page, Selection};
use crate::watch::{Start, WatchPlan};

/// Shortest time that the real server gives a watch without a time-out of its own.
const DEFAULT_WATCH: Duration = Duration::from_secs(1800);

pub(super) fn serve(core: &mut Core, served: &Served<'_>, mood: &Mood) -> Result<Reply, Failure> {
    match served.call.verb() {
        "watch" => watch(core, served, mood),
        "list" => list(core, served, mood),
        "create" => create(core, served),
        "deletecollection" => delete_all(core, served),
        _ => Err(Failure::method_not_allowed()),
    }
}

pub(super) fn selection(served: &Served<'_>) -> Result<Selection, Failure> {
    let namespace = &served.place.namespace;
    Ok(Selection {
        namespace: (!namespace.is_empty()).then(|| namespace.clone()),
        labels: Labels::parse(served.call.parameter("labelSelector"))?,
        fields: Fields::parse(&served.kind, served.call.parameter("fieldSelector"))?,
    })
}

fn version(served: &Served<'_>) -> Result<Option<u64>, Failure> {
    let text = served.call.parameter("resourceVersion");
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        Failure::bad_request(format!(
            "resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
        ))
    })
}

fn list(core: &mut Core, served: &Served<'_>, mood: &Mood) -> Result<Reply, Failure> {
    let call = served.call;
    let page = Page {
        limit: call.parameter("limit").parse().unwrap_or(0),
        token: call.parameter("continue").to_owned(),
        version: version(served)?,
        exact: call.parameter("resourceVersionMatch") == "Exact",
        stale: mood.stale,
    };
    let listing = core.page(&served.kind, &selection(served)?, &page)?;
    Ok(Reply::ok(reply::list(&served.kind, call.form(), listing, core.now())))
}

/// The plan of a watch on a collection; object watches add a name to the selection.
pub(super) fn watch(core: &mut Core, served: &Served<'_>, mood: &Mood) -> Result<Reply, Failure> {
    let call = served.call;
    let version = version(served)?;
    let streaming = call.flag("sendInitialEvents");
    if streaming && call.parameter("resourceVersionMatch") != "NotOlderThan" {
        return Err(Failure::new(
            422,
            "Invalid",
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    let start = match version {
        _ if mood.gone => Start::Gone,
        _ if streaming => Start::Streaming,
        None | Some(0) => Start::Present,
        Some(version) => Start::After(version),
    };
    let timeout = match call.parameter("timeoutSeconds").parse() {
        Ok(0) | Err(_) => DEFAULT_WATCH,
        Ok(seconds) => Duration::from_secs(seconds),
    };
    let _ = core;
    Ok(Reply::Watch(Box::new(WatchPlan {
        kind: served.kind.clone(),
        selection: selection(served)?,
        start,
        bookmarks: call.flag("allowWatchBookmarks"),
        timeout,
        form: call.form(),
        disturbance: mood.disturbance.clone(),
        client: served.client,
    })))
}

fn create(core: &mut Core, served: &Served<'_>) -> Result<Reply, Failure> {
    let call = served.call;
    let namespaced = served.kind.namespaced;
    if namespaced && served.place.namespace.is_empty() {
        return Err(Failure::method_not_allowed());
    }
    let by = call.actor(&served.user);
    let created =
        core.create(&by, &served.kind, &served.place.namespace, call.json()?, &call.options()?)?;
    let value = reply::object(&served.kind, call.form(), created, core.now());
    Ok(Reply::Json { code: 201, value })
}

fn delete_all(core: &mut Core, served: &Served<'_>) -> Result<Reply, Failure> {
    let by = served.call.actor(&served.user);
    let options = object::delete_options(served.call)?;
    let selection = selection(served)?;
    let kind = &served.kind;
    let wanted = |object: &serde_json::Value| selection.matches(object);
    let items =
        core.delete_collection(&by, kind, selection.namespace.as_deref(), &wanted, &options)?;
    let listing = Listing { items, version: core.store.version(), token: None, remaining: None };
    let mut list = reply::list(kind, served.call.form(), listing, core.now());
    if list["items"].is_null() {
        list["items"] = json!([]);
    }
    Ok(Reply::ok(list))
}
