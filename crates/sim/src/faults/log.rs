//! The append-only log of requests: what traces are compared by, and what writes are counted from.

use std::fmt::Write;

use super::{ClientId, Faults, rule::WRITES};

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Microseconds of virtual time since the cluster began.
    pub micros: i64,
    /// Handle of the client.
    pub client: ClientId,
    /// Verb of the API, for example `patch`.
    pub verb: &'static str,
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// `User-Agent`.
    pub agent: String,
    /// HTTP status code; 0 if no reply was seen.
    pub code: u16,
    /// Digest of the request's body (FNV-1a), 0 without one.
    pub digest: u64,
}

impl Entry {
    /// Whether it asked for a change.
    pub fn is_write(&self) -> bool {
        WRITES.contains(&self.verb)
    }
}

impl Faults {
    pub(crate) fn record(&mut self, entry: Entry) {
        self.log.push(entry);
    }

    /// Every request so far, in order.
    pub fn log(&self) -> &[Entry] {
        &self.log
    }

    /// Write requests so far, dry runs and access reviews excluded.
    pub fn write_log(&self) -> impl Iterator<Item = &Entry> {
        self.log.iter().filter(|entry| {
            entry.is_write()
                && !entry.path.contains("dryRun=All")
                && !entry.path.contains("accessreviews")
        })
    }

    /// The log as text, a line a request: equal texts mean equal histories.
    pub fn trace(&self) -> String {
        self.log.iter().fold(String::new(), |mut text, entry| {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{:>12} {} {} {} {} {:016x}",
                entry.micros, entry.client, entry.method, entry.path, entry.code, entry.digest
            );
            text
        })
    }
}

/// FNV-1a: stable over processes, unlike the standard library's hashes.
pub(crate) fn digest(body: &[u8]) -> u64 {
    if body.is_empty() {
        return 0;
    }
    body.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
