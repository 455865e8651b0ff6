//! Which controller a word of the command line, or a document, means.

use foresight::mistake::Mistake;
use foresight::schema;
use operators::catalog::{self, Row};
use serde_json::Value;

/// The row that a word names: kind, plural, singular or short name, with or without the group.
///
/// # Errors
/// When there is none.
pub fn named(word: &str) -> Result<Row, Mistake> {
    let lower = word.to_lowercase();
    let (name, group) = lower.split_once('.').unwrap_or((&lower, ""));
    let found = catalog::rows().into_iter().find(|row| {
        let names = (row.definition)().spec.names;
        let short = names.short_names.unwrap_or_default();
        let is_it = row.kind.kind.to_lowercase() == name
            || row.kind.plural == name
            || names.singular.as_deref() == Some(name)
            || short.iter().any(|one| one == name);
        is_it && (group.is_empty() || row.kind.group == group)
    });
    found.ok_or_else(|| {
        let known: Vec<&str> = catalog::rows().iter().map(|row| row.kind.kind).collect();
        Mistake::new(
            format!("Steadfast runs no kind {word}."),
            format!("It runs: {}.", known.join(", ")),
        )
    })
}

/// The row of a document; `None` for kinds that are not ours.
///
/// # Errors
/// When the kind is ours and its version is not served.
pub fn of(document: &Value) -> Result<Option<Row>, Mistake> {
    let text = |field: &str| document[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let ours = |row: &Row| row.kind.group == group && row.kind.kind == text("kind");
    let Some(row) = catalog::rows().into_iter().find(ours) else { return Ok(None) };
    if row.kind.version == version {
        return Ok(Some(row));
    }
    let served = definition(&row);
    let served = schema::served(&served);
    let next =
        format!("Write apiVersion: {group}/{} (served: {}).", row.kind.version, served.join(", "));
    let kind = row.kind.kind;
    Err(Mistake::new(format!("{kind} has no version {version}."), next))
}

/// The definition of a row's kind as data.
pub fn definition(row: &Row) -> Value {
    // A type of Kubernetes always serialises.
    serde_json::to_value((row.definition)()).unwrap_or_default()
}
