//! One seed, one history: what every kind of world must keep.

use std::future::Future;

use super::determinism;

/// Plays a history twice under one seed, and once under another. It tells the trace of its requests and
/// a digest of what is stored at the end. Answers the trace.
pub(crate) fn byte_for_byte<F>(history: fn(u64) -> F) -> String
where
    F: Future<Output = (String, u64)> + 'static,
{
    let first = determinism::run(7, move || history(7));
    let second = determinism::run(7, move || history(7));
    let lines = first.0.lines().zip(second.0.lines());
    let different = lines.enumerate().find(|(_, (one, other))| one != other);
    assert!(different.is_none(), "first difference: {different:?}");
    assert_eq!(first.0.len(), second.0.len());
    assert_eq!(first.1, second.1, "the stores differ");
    let other = determinism::run(8, move || history(8));
    assert_ne!(first.0, other.0, "another seed is another history");
    first.0
}
