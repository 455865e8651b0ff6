//! Patches: JSON patch, merge patch and strategic merge, with the API server's own quirks.
//!
//! Pure functions over values. What a patch may not change is the verbs' business.

use serde_json::Value;

use crate::schema::Schema;

mod operations;
mod strategic;

#[cfg(test)]
mod tests;

/// RFC 6902, as the library in kube-apiserver does it: `test` against null passes where nothing is,
/// `replace` of a missing key adds it, negative indices count from the end.
///
/// # Errors
///
/// Why an operation does not apply. kube-apiserver logs this text and answers with a general one.
pub fn json(live: &Value, operations: &Value) -> Result<Value, String> {
    operations::apply(live, operations)
}

/// RFC 7386.
#[must_use]
pub fn merge(live: &Value, patch: &Value) -> Value {
    let mut merged = live.clone();
    json_patch::merge(&mut merged, patch);
    merged
}

/// Strategic merge: lists merge by key where the schema says so; the directives `$patch`,
/// `$retainKeys`, `$setElementOrder/…` and `$deleteFromPrimitiveList/…` are followed.
///
/// # Errors
///
/// The server's words for a patch that contradicts itself.
pub fn strategic(schema: &Schema, live: &Value, patch: &Value) -> Result<Value, String> {
    strategic::merge(schema, live, patch)
}
