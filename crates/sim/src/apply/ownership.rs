//! How ownership moves: what a write takes from others, what an applier gives up.
//!
//! Works on plain values and sets of paths; keeps no time of its own.

use std::sync::LazyLock;

use serde_json::Value;

use super::compare::{Changes, compare};
use super::fields::{self, Fields};
use super::managers::{Entry, Identity, Managers, Operation};
use super::merge::merge;
use super::walk::{fields as fields_of, remove};
use super::{Conflict, Writer};
use crate::schema::Schema;

/// Paths that nobody owns.
static UNOWNED: LazyLock<Fields> = LazyLock::new(|| {
    fields::of(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// What the endpoint resets, so that writing there owns nothing of it.
fn reset_fields(schema: &Schema, writer: &Writer) -> Fields {
    match (writer.subresource.as_deref(), schema) {
        (Some("status"), Schema::Named(_)) => fields::of(&[&["spec"]]),
        (Some("status"), _) => fields::of(&[&["apiVersion"], &["kind"], &["metadata"], &["spec"]]),
        (_, Schema::Named(_)) => fields::of(&[&["status"]]),
        _ => Fields::default(),
    }
}

/// Takes changed fields from all managers but `writer`; with `force` off, a changed field of
/// somebody else is a conflict.
fn take(
    managers: &mut Managers,
    changes: &Changes,
    me: Option<&Identity>,
    force: bool,
) -> Result<(), Vec<Conflict>> {
    let changed = changes.modified.union(&changes.added);
    let mut conflicts = Vec::new();
    for (identity, entry) in &managers.entries {
        if Some(identity) != me {
            let lost = entry.fields.intersection(&changed);
            conflicts.extend(
                lost.paths()
                    .into_iter()
                    .map(|field| Conflict { manager: identity.printed(), field }),
            );
        }
    }
    if !force && !conflicts.is_empty() {
        return Err(conflicts);
    }
    for (identity, entry) in &mut managers.entries {
        if Some(identity) != me {
            entry.fields = entry.fields.difference(&changed).difference(&changes.removed);
        }
    }
    managers.drop_empty();
    Ok(())
}

/// Records a write that was no apply: `manager` gets what it changed, in operation Update.
pub(super) fn update(
    schema: &Schema,
    live: &Value,
    new: &Value,
    managers: &mut Managers,
    writer: &Writer,
) {
    let changes = compare(schema, live, new).without(&reset_fields(schema, writer));
    // Forced, hence without conflicts.
    let _ = take(managers, &changes, None, true);
    let gained = changes.modified.union(&changes.added).difference(&UNOWNED);
    if gained.is_empty() {
        return;
    }
    let me = Identity::of(writer, Operation::Update);
    let before = managers.entries.remove(&me).map(|entry| entry.fields).unwrap_or_default();
    let entry = Entry {
        fields: gained.union(&before),
        api_version: writer.api_version.clone(),
        // The server loses the time on its way through the scale subresource.
        time: (writer.subresource.as_deref() != Some("scale")).then(|| writer.time.clone()),
    };
    managers.entries.insert(me, entry);
    managers.cap();
}

/// Applies `config` over `live`; answers the new object without its managedFields.
pub(super) fn apply(
    schema: &Schema,
    live: &Value,
    config: &Value,
    managers: &mut Managers,
    writer: &Writer,
) -> Result<Value, Vec<Conflict>> {
    let reset = reset_fields(schema, writer);
    let me = Identity::of(writer, Operation::Apply);
    let last = managers.entries.get(&me).cloned();
    let merged = merge(schema, live, config);
    let entry = Entry {
        fields: fields_of(schema, config).without(&reset),
        api_version: writer.api_version.clone(),
        time: last.as_ref().and_then(|last| last.time.clone()),
    };
    managers.entries.insert(me.clone(), entry);
    let new = match last {
        Some(last) if !last.fields.is_empty() => prune(schema, &merged, managers, &last.fields),
        _ => merged,
    };
    let changes = compare(schema, live, &new).without(&reset);
    take(managers, &changes, Some(&me), writer.force)?;
    if let Some(entry) = managers.entries.get_mut(&me) {
        entry.fields = entry.fields.difference(&UNOWNED);
        if new != *live {
            entry.time = Some(writer.time.clone());
        }
    }
    managers.drop_empty();
    Ok(new)
}

/// Removes what this applier applied last time, does not apply now, and nobody else owns.
fn prune(schema: &Schema, merged: &Value, managers: &Managers, last: &Fields) -> Value {
    let last = last.with_parents(schema);
    let all = fields_of(schema, merged).with_parents(schema);
    let pruned = remove(schema, merged, &last);
    let kept = fields_of(schema, &pruned).with_parents(schema);
    let owned = managers.owned().with_parents(schema);
    let pruned = remove(schema, merged, &all.difference(&kept.union(&owned)));
    let kept = fields_of(schema, &pruned).with_parents(schema);
    remove(schema, merged, &all.difference(&kept).intersection(&last))
}
