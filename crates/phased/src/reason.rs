//! Reasons as data: why a resource is where it is, documented once.
//!
//! A reason's name is API: it appears in conditions and Events, and scripts match on it.

/// A documented reason. Controllers declare theirs as constants and list them, so that
/// `docs/` can be generated and the lint can refuse a reason that nobody documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// CamelCase word, at most 64 characters.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What ends it: what a person can do, or what is being waited for.
    pub remedy: &'static str,
}
