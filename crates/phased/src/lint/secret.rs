//! No secret value in a plan: neither as it stands, nor escaped, nor in base64 at any offset.

use super::{Findings, Hidden, Rule};
use crate::plan::Plan;
use crate::render;

/// Shorter traces are not looked for: they would be found by chance.
const SHORTEST_TRACE: usize = 8;

pub(super) fn check(plan: &Plan, secrets: &[Hidden], found: &mut Findings) {
    if secrets.is_empty() {
        return;
    }
    let told = [("its text", render::text(plan)), ("its Debug form", format!("{plan:?}"))];
    for (number, Hidden(secret)) in secrets.iter().enumerate() {
        let traces = traces(secret);
        for (place, text) in &told {
            if traces.iter().any(|trace| text.contains(trace.as_str())) {
                let detail = format!("secret number {number} of the context is in {place}");
                found.add(Rule::NoSecretIsTold, detail);
            }
        }
    }
}

/// Texts that give a secret away.
fn traces(secret: &str) -> Vec<String> {
    if secret.is_empty() {
        return Vec::new();
    }
    let escaped = format!("{secret:?}");
    let mut traces = vec![secret.to_owned(), escaped[1..escaped.len() - 1].to_owned()];
    traces.extend((0..3).map(|offset| base64_trace(secret.as_bytes(), offset)));
    traces.retain(|trace| trace.len() >= SHORTEST_TRACE || trace == secret);
    traces
}

/// The part of a base64 text that depends on `secret` alone, when `offset` bytes (modulo three)
/// come before it.
fn base64_trace(secret: &[u8], offset: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |index: usize| {
        let byte = secret[index / 8 - offset];
        usize::from(byte >> (7 - index % 8) & 1)
    };
    let first = (offset * 8).div_ceil(6);
    let end = (offset + secret.len()) * 8 / 6;
    (first..end)
        .map(|digit| (0..6).fold(0, |value, place| value << 1 | bit(digit * 6 + place)))
        .map(|value| char::from(ALPHABET[value]))
        .collect()
}
