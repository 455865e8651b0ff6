//! Server-side apply and field ownership (design.md section 4).
//!
//! Pure functions over values: no clock, no store. The rules are those of
//! `sigs.k8s.io/structured-merge-diff` v6 as kube-apiserver 1.36 uses it.

use serde_json::Value;

use crate::schema::Schema;
use crate::status::Cause;

mod compare;
mod element;
mod fields;
mod last_applied;
mod managers;
mod merge;
mod ownership;
mod typed;
mod walk;

pub use typed::check;

use managers::Managers;

/// The manager that owns the fields of an object from before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who writes, for managedFields.
#[derive(Clone, Debug)]
pub struct Writer {
    /// Field manager.
    pub manager: String,
    /// Take over fields of others.
    pub force: bool,
    /// Subresource.
    pub subresource: Option<String>,
    /// apiVersion of the written object.
    pub api_version: String,
    /// RFC 3339 time.
    pub time: String,
}

/// A field owned by somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Owner of the field as messages name it: `"kubectl" using apps/v1`, quotes included.
    pub manager: String,
    /// Path of the field, for example `.spec.replicas`.
    pub field: String,
}

/// Server-side apply: `patch` merged into `live`, with `metadata.managedFields` brought up to date.
///
/// # Errors
///
/// Every field of another manager that would change, unless the writer forces.
pub fn server_side(
    schema: &Schema,
    live: Option<&Value>,
    patch: &Value,
    writer: &Writer,
) -> Result<Value, Vec<Conflict>> {
    let found = live.cloned().unwrap_or_else(|| empty(schema));
    let mut managers = Managers::decode(&found).unwrap_or_default();
    let live = unmanaged(&found);
    let patch = unmanaged(patch);
    if managers.entries.is_empty() {
        let earlier = Writer { manager: BEFORE_FIRST_APPLY.to_owned(), ..writer.clone() };
        ownership::update(schema, &empty(schema), &live, &mut managers, &earlier);
    }
    let mut attempt = managers.clone();
    let applied = ownership::apply(schema, &live, &patch, &mut attempt, writer);
    let (mut object, managers) = match applied {
        Ok(object) => (object, attempt),
        Err(conflicts) => {
            let left = last_applied::unexcused(schema, &live, conflicts, writer);
            if !left.is_empty() {
                return Err(left);
            }
            let forced = Writer { force: true, ..writer.clone() };
            let object = ownership::apply(schema, &live, &patch, &mut managers, &forced)?;
            (object, managers)
        }
    };
    last_applied::refresh(&mut object, &patch, writer);
    managers.encode(&mut object);
    Ok(object)
}

/// Ownership after a write that was no apply: `before` is the stored object, none for a create;
/// `after` is what is about to be stored, with the managedFields that the client sent, if any.
pub fn track(schema: &Schema, before: Option<&Value>, after: &mut Value, writer: &Writer) {
    let mut managers = match (before, writer.subresource.is_some()) {
        (Some(before), true) => Managers::decode(before).unwrap_or_default(),
        _ if reset(after) => Managers::default(),
        (before, _) => match Managers::decode(after) {
            Some(sent) if !sent.entries.is_empty() => sent,
            _ => before.and_then(Managers::decode).unwrap_or_default(),
        },
    };
    let new = unmanaged(after);
    // An object whose ownership was cleared stays untracked until somebody applies.
    if before.is_none() || !managers.entries.is_empty() {
        let live = before.map_or_else(|| empty(schema), unmanaged);
        ownership::update(schema, &live, &new, &mut managers, writer);
    }
    *after = new;
    managers.encode(after);
}

/// The message of a conflict and its causes, as kube-apiserver words them.
#[must_use]
pub fn describe(conflicts: &[Conflict]) -> (String, Vec<Cause>) {
    let causes = conflicts
        .iter()
        .map(|conflict| {
            let text = format!("conflict with {}", conflict.manager);
            Cause::new("FieldManagerConflict", conflict.field.clone(), text)
        })
        .collect();
    if let [one] = conflicts {
        let message =
            format!("Apply failed with 1 conflict: conflict with {}: {}", one.manager, one.field);
        return (message, causes);
    }
    let mut lines: Vec<String> = Vec::new();
    let mut last = None;
    for conflict in conflicts {
        if last != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", conflict.manager));
            last = Some(&conflict.manager);
        }
        lines.push(format!("- {}", conflict.field));
    }
    (format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n")), causes)
}

/// The object that an apply or a create starts from.
fn empty(schema: &Schema) -> Value {
    match schema {
        Schema::Named(_) => schema.empty(),
        _ => serde_json::json!({ "metadata": {} }),
    }
}

/// The object without its managedFields, which are no field of themselves.
fn unmanaged(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Whether the client asks to forget all owners, by `[{}]` or an empty list.
fn reset(object: &Value) -> bool {
    match object["metadata"]["managedFields"].as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => one.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod tests;
