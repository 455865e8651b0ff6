//! When a failed piece of work is tried again: client-go's exponential limiter, per object.
//!
//! Must not sleep; it only says when.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

const FIRST_MILLIS: i64 = 5;
const LONGEST_MILLIS: i64 = 1_000_000;

/// Failure counts and next tries, by uid.
#[derive(Default)]
pub(crate) struct Retries {
    entries: BTreeMap<String, Entry>,
}

struct Entry {
    tries: u32,
    next: Timestamp,
    version: String,
}

impl Retries {
    /// The time before which this version of the object must not be tried again. A changed object
    /// is tried at once, as its event puts it into the real queue without a limit.
    pub(crate) fn waits(&self, uid: &str, version: &str, now: Timestamp) -> Option<Timestamp> {
        let entry = self.entries.get(uid)?;
        (entry.version == version && entry.next > now).then_some(entry.next)
    }

    /// Counts a failure: 5 ms, doubling to 1000 s.
    pub(crate) fn failed(&mut self, uid: &str, version: &str, now: Timestamp) -> Timestamp {
        let tries = self.entries.get(uid).map_or(0, |entry| entry.tries);
        let wait = FIRST_MILLIS.saturating_mul(1_i64 << tries.min(32)).min(LONGEST_MILLIS);
        let next = now.saturating_add(SignedDuration::from_millis(wait)).unwrap_or(now);
        let entry = Entry { tries: tries + 1, next, version: version.to_owned() };
        self.entries.insert(uid.to_owned(), entry);
        next
    }

    pub(crate) fn succeeded(&mut self, uid: &str) {
        self.entries.remove(uid);
    }
}
