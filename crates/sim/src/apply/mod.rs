//! Server-side apply and field ownership. (Stub of the API owner; the APPLY owner fills it.)

use serde_json::Value;

use crate::schema::Schema;

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
    /// Owner of the field.
    pub manager: String,
    /// Path of the field.
    pub field: String,
}

/// Server-side apply.
pub fn server_side(
    _schema: &Schema,
    live: Option<&Value>,
    patch: &Value,
    _writer: &Writer,
) -> Result<Value, Vec<Conflict>> {
    Ok(match live {
        Some(live) => crate::patch::merge(live, patch),
        None => patch.clone(),
    })
}

/// Ownership after a write that was no apply.
pub fn track(_schema: &Schema, _before: Option<&Value>, _after: &mut Value, _writer: &Writer) {}
