//! Stable digests of content: the same value gives the same text in every process and release.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Twelve bytes of SHA-256 over the canonical JSON (keys sorted, no blanks), in hex.
pub fn of(value: &Value) -> String {
    let mut text = Vec::new();
    write(value, &mut text);
    let hash = Sha256::digest(&text);
    hash.iter().take(12).map(|b| format!("{b:02x}")).collect()
}

/// Writes the value as compact JSON with the keys of every object in order. `serde_json` sorts them
/// anyway, unless some crate of the build turns its `preserve_order` feature on; a digest must not
/// depend on that.
fn write(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            text.push(b'{');
            for (place, (key, below)) in entries.into_iter().enumerate() {
                if place > 0 {
                    text.push(b',');
                }
                plain(key, text);
                text.push(b':');
                write(below, text);
            }
            text.push(b'}');
        }
        Value::Array(items) => {
            text.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(b',');
                }
                write(item, text);
            }
            text.push(b']');
        }
        scalar => plain(scalar, text),
    }
}

fn plain(value: &impl Serialize, text: &mut Vec<u8>) {
    // Writing to memory cannot fail, and every text and number is JSON.
    let _ = serde_json::to_writer(text, value);
}
