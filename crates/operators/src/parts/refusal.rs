//! Fields of a spec that cannot be carried out, each with its path and the way out.

/// Why a field cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Path of the field, such as `spec.databaseName`.
    pub path: String,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// Joins refusals into one sentence a field.
pub fn sentence(refusals: &[Refusal]) -> String {
    let all: Vec<String> = refusals.iter().map(|r| format!("{}: {}", r.path, r.message)).collect();
    all.join("; ")
}
