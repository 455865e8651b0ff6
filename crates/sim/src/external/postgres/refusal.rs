//! PostgreSQL's errors: SQLSTATE, message, detail, hint, position.
//!
//! Must not decide when to refuse.

/// An error as the server sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// SQLSTATE.
    pub code: &'static str,
    /// Message.
    pub message: String,
    /// Detail.
    pub detail: Option<String>,
    /// Hint.
    pub hint: Option<String>,
    /// Position in the query, counted in characters from one.
    pub position: Option<usize>,
    /// Whether the session ends with it.
    pub fatal: bool,
}

impl Refusal {
    /// An ordinary error.
    pub fn new(code: &'static str, message: &str) -> Refusal {
        Refusal {
            code,
            message: message.to_owned(),
            detail: None,
            hint: None,
            position: None,
            fatal: false,
        }
    }

    /// An error that ends the session.
    pub fn fatal(code: &'static str, message: &str) -> Refusal {
        Refusal { fatal: true, ..Refusal::new(code, message) }
    }

    pub(super) fn detail(mut self, detail: &str) -> Refusal {
        self.detail = Some(detail.to_owned());
        self
    }

    pub(super) fn hint(mut self, hint: &str) -> Refusal {
        self.hint = Some(hint.to_owned());
        self
    }

    pub(super) fn at(mut self, sql: &str, byte: usize) -> Refusal {
        let before = sql.get(..byte.min(sql.len())).unwrap_or(sql);
        self.position = Some(before.chars().count() + 1);
        self
    }
}
