//! Calls on one object and its generic subresources: get, update, patch, delete.

use serde_json::{Value, json};

use super::collection;
use super::dispatch::{Mood, Served};
use crate::cluster::{Core, DeleteOptions, Patch, Propagation, Sub};
use crate::reply::{self, Reply};
use crate::request::Call;
use crate::selector::Fields;
use crate::status::{Cause, Failure};
use crate::verbs::scale_of;

pub(super) fn serve(
    core: &mut Core,
    served: &Served<'_>,
    sub: Option<Sub>,
    mood: &Mood,
) -> Result<Reply, Failure> {
    match served.call.verb() {
        "get" => get(core, served, sub, mood),
        "watch" => watch(core, served, mood),
        "update" => update(core, served, sub),
        "patch" => patch(core, served, sub),
        "delete" if sub.is_none() => delete(core, served),
        _ => Err(Failure::method_not_allowed()),
    }
}

fn get(core: &Core, served: &Served<'_>, sub: Option<Sub>, mood: &Mood) -> Result<Reply, Failure> {
    collection::check_age(core, served)?;
    let object = core.read(&served.kind, &served.key, mood.stale)?;
    if sub == Some(Sub::Scale) {
        return Ok(Reply::ok(scale_of(&served.kind, &object)?));
    }
    answer(core, served, object)
}

/// Watching one object by its path is watching the collection by name.
fn watch(core: &Core, served: &Served<'_>, mood: &Mood) -> Result<Reply, Failure> {
    let reply = collection::watch(core, served, mood)?;
    let name = format!("metadata.name={}", served.place.name);
    match reply {
        Reply::Watch(mut plan) => {
            plan.selection.fields = Fields::parse(&served.kind, &name)?;
            Ok(Reply::Watch(plan))
        }
        other => Ok(other),
    }
}

fn answer(core: &Core, served: &Served<'_>, object: Value) -> Result<Reply, Failure> {
    if object["kind"] == json!("Scale") || object["kind"] == json!("Status") {
        return Ok(Reply::ok(object));
    }
    Ok(Reply::ok(reply::object(&served.kind, served.call.form(), object, core.now())))
}

fn update(core: &mut Core, served: &Served<'_>, sub: Option<Sub>) -> Result<Reply, Failure> {
    let call = served.call;
    let by = call.actor(&served.user);
    let kind = &served.kind;
    let options = call.options("UpdateOptions")?;
    core.report_duplicates(kind, call.duplicates(), &options)?;
    let object = core.update(&by, kind, &served.key, call.json(&kind.kind)?, sub, &options)?;
    answer(core, served, object)
}

fn patch(core: &mut Core, served: &Served<'_>, sub: Option<Sub>) -> Result<Reply, Failure> {
    let call = served.call;
    let by = call.actor(&served.user);
    let patch = read_patch(call)?;
    let options = call.options("PatchOptions")?;
    let existed = core.store.get(&served.key).is_some();
    let object = core.patch(&by, &served.kind, &served.key, patch, sub, &options)?;
    match answer(core, served, object)? {
        Reply::Json { value, .. } if !existed => Ok(Reply::Json { code: 201, value }),
        reply => Ok(reply),
    }
}

fn read_patch(call: &Call) -> Result<Patch, Failure> {
    let media = call.content_type.split(';').next().unwrap_or("").trim();
    let force = call.flag("force");
    match media {
        "application/json-patch+json" => Ok(Patch::Json(call.patch_json()?)),
        "application/merge-patch+json" => Ok(Patch::Merge(call.patch_json()?)),
        "application/strategic-merge-patch+json" => Ok(Patch::Strategic(call.patch_json()?)),
        "application/apply-patch+yaml" => Ok(Patch::Apply { object: call.patch_json()?, force }),
        _ => Err(Failure::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with(json!({}))),
    }
}

fn delete(core: &mut Core, served: &Served<'_>) -> Result<Reply, Failure> {
    let by = served.call.actor(&served.user);
    let options = delete_options(served.call)?;
    let object = core.delete(&by, &served.kind, &served.key, &options)?;
    answer(core, served, object)
}

/// `DeleteOptions` from the body, else from the query.
pub(super) fn delete_options(call: &Call) -> Result<DeleteOptions, Failure> {
    let body = if call.body.is_empty() { Value::Null } else { call.json("DeleteOptions")? };
    let text = |field: &str| {
        body["preconditions"][field].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let policy = match body["propagationPolicy"].as_str() {
        Some(policy) => policy,
        None => call.parameter("propagationPolicy"),
    };
    let propagation = match policy {
        "" if body["orphanDependents"] == json!(true) => Some(Propagation::Orphan),
        "" => None,
        "Background" => Some(Propagation::Background),
        "Foreground" => Some(Propagation::Foreground),
        "Orphan" => Some(Propagation::Orphan),
        other => {
            let cause = Cause::new(
                "FieldValueNotSupported",
                "propagationPolicy",
                format!(
                    "Unsupported value: \"{other}\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                ),
            );
            return Err(Failure::invalid_options("DeleteOptions", &[cause]));
        }
    };
    let dry_run = call.dry_run()
        || body["dryRun"].as_array().is_some_and(|list| list.contains(&json!("All")));
    Ok(DeleteOptions {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        propagation,
        grace_period: body["gracePeriodSeconds"]
            .as_i64()
            .or_else(|| call.parameter("gracePeriodSeconds").parse().ok()),
        dry_run,
    })
}
