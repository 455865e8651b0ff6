//! Stable digests of content: the same value gives the same text in every process and release.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Twelve bytes of SHA-256 over the canonical JSON (keys sorted, no blanks), in hex.
pub fn of(value: &Value) -> String {
    let hash = Sha256::digest(sorted(value).to_string().as_bytes());
    hash.iter().take(12).map(|b| format!("{b:02x}")).collect()
}

/// The value with the keys of every object in order. `serde_json` sorts them anyway, unless some
/// crate of the build turns its `preserve_order` feature on; a digest must not depend on that.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            entries.into_iter().map(|(key, v)| (key.clone(), sorted(v))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
