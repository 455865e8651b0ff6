//! Patches. (Stub of the API owner; the APPLY owner fills it.)

use serde_json::Value;

use crate::schema::Schema;

/// RFC 6902.
pub fn json(_live: &Value, _operations: &Value) -> Result<Value, String> {
    Err("not written yet".into())
}

/// RFC 7386.
pub fn merge(live: &Value, patch: &Value) -> Value {
    let mut merged = live.clone();
    json_patch::merge(&mut merged, patch);
    merged
}

/// Strategic merge.
pub fn strategic(_schema: &Schema, live: &Value, patch: &Value) -> Result<Value, String> {
    Ok(merge(live, patch))
}
