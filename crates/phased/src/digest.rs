//! Stable digests of content: the same value gives the same text in every process and release.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Twelve bytes of SHA-256 over the canonical JSON (keys sorted, no blanks), in hex.
pub fn of(value: &Value) -> String {
    let hash = Sha256::digest(value.to_string().as_bytes());
    hash.iter().take(12).map(|b| format!("{b:02x}")).collect()
}
