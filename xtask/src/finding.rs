//! What a check found: where, which rule, and what to do about it.
//!
//! Must not know any rule: rules live beside the checks that hold them.

use std::fmt;

use anyhow::{Result, bail};

/// One breach of one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path relative to the root.
    pub(crate) path: String,
    /// Line counted from one, or zero when the finding is about the whole file.
    pub(crate) line: usize,
    /// Short name of the rule.
    pub(crate) rule: &'static str,
    /// What is wrong and what to do instead.
    pub(crate) message: String,
}

impl Finding {
    /// A finding at one line.
    pub(crate) fn at(path: &str, line: usize, rule: &'static str, message: String) -> Finding {
        Finding { path: path.to_owned(), line, rule, message }
    }

    /// A finding about a whole file.
    pub(crate) fn whole(path: &str, rule: &'static str, message: String) -> Finding {
        Finding::at(path, 0, rule, message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(out, "{}: [{}] {}", self.path, self.rule, self.message)
        } else {
            write!(out, "{}:{}: [{}] {}", self.path, self.line, self.rule, self.message)
        }
    }
}

/// Prints every finding in order and fails if there is one.
pub(crate) fn conclude(mut findings: Vec<Finding>) -> Result<()> {
    findings.sort();
    findings.dedup();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        count => bail!("{count} finding(s)"),
    }
}
