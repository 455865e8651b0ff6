//! Calls on all objects of a kind: list, watch, create, deletecollection.

use std::time::Duration;

use serde_json::json;

use super::dispatch::{Mood, Served};
use super::object;
use crate::cluster::Core;
use crate::reply::{self, Reply};
use crate::selector::{Fields, Labels};
use crate::status::{Cause, Failure};
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

fn version(served: &Served<'_>) -> Result<Option<u64>, String> {
    let text = served.call.parameter("resourceVersion");
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        format!(
            "resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
        )
    })
}

/// Reads that ask for a version that does not exist yet time out.
pub(super) fn check_age(core: &Core, served: &Served<'_>) -> Result<(), Failure> {
    match version(served) {
        Ok(Some(wanted)) => core.check_reached(wanted),
        Ok(None) => Ok(()),
        Err(text) => Err(Failure::bad_request(format!("invalid resource version: {text}"))),
    }
}

fn list(core: &mut Core, served: &Served<'_>, mood: &Mood) -> Result<Reply, Failure> {
    let call = served.call;
    let limit = match call.parameter("limit") {
        "" => 0,
        text => text.parse().map_err(|_| {
            Failure::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax"))
        })?,
    };
    let matching = call.parameter("resourceVersionMatch");
    let version = version(served)
        .map_err(|text| Failure::bad_request(format!("invalid resource version: {text}")))?;
    if !matching.is_empty() && version.is_none() {
        return Err(forbidden_match(
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ));
    }
    let page = Page {
        limit,
        token: call.parameter("continue").to_owned(),
        version,
        exact: matching == "Exact",
        stale: mood.stale,
    };
    let mut listing = core.page(&served.kind, &selection(served)?, &page)?;
    if !call.parameter("labelSelector").is_empty() || !call.parameter("fieldSelector").is_empty() {
        // The server does not know how many of the rest would be selected.
        listing.remaining = None;
    }
    Ok(Reply::ok(reply::list(&served.kind, call.form(), listing, core.now())))
}

fn forbidden_match(text: &str) -> Failure {
    let cause =
        Cause::new("FieldValueForbidden", "resourceVersionMatch", format!("Forbidden: {text}"));
    Failure::invalid_options("ListOptions", &[cause])
}

/// The plan of a watch on a collection; object watches add a name to the selection.
pub(super) fn watch(core: &Core, served: &Served<'_>, mood: &Mood) -> Result<Reply, Failure> {
    let call = served.call;
    let version = version(served).map_err(|text| Failure::new(500, "", text))?;
    if mood.stale > 0
        && let Some(wanted) = version
    {
        core.check_reached_by(mood.stale, wanted)?;
    }
    let streaming = call.flag("sendInitialEvents");
    if streaming && call.parameter("resourceVersionMatch") != "NotOlderThan" {
        return Err(forbidden_match(
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
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
    let kind = &served.kind;
    let options = call.options("CreateOptions")?;
    let object = call.json(&kind.kind)?;
    core.report_duplicates(kind, call.duplicates(), &options)?;
    let created = core.create(&by, kind, &served.place.namespace, object, &options)?;
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
