//! Safety rules, asked after every change of the store.
//!
//! A rule sees one change at a time, with the store as it is after the whole step. Must not write.

use crate::Core;
use crate::store::{Change, Key, Store};

/// What a rule looks at.
pub struct Moment<'a> {
    /// The store after the step.
    pub store: &'a Store,
    /// The change that is being judged.
    pub change: &'a Change,
}

/// A rule: `Err` says in words what must never be.
pub type Rule = Box<dyn Fn(&Moment) -> Result<(), String> + Send>;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's name.
    pub rule: String,
    /// The object whose change broke it.
    pub key: Key,
    /// resourceVersion of the change.
    pub version: u64,
    /// What the rule said.
    pub what: String,
}

/// All rules and their violations.
#[derive(Default)]
pub struct Checker {
    rules: Vec<(String, Rule)>,
    seen: u64,
    violations: Vec<Violation>,
}

impl Checker {
    /// Adds a rule.
    pub fn add(&mut self, name: &str, rule: Rule) {
        self.rules.push((name.to_owned(), rule));
    }

    /// Judges every change since the last look.
    pub fn look(&mut self, core: &Core) {
        let store = &core.store;
        if let Some(changes) = store.since(self.seen) {
            for change in changes {
                self.violations.extend(judge(&self.rules, store, change));
            }
        }
        self.seen = store.version();
    }

    /// Broken rules, in order.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}

fn judge<'a>(
    rules: &'a [(String, Rule)],
    store: &'a Store,
    change: &'a Change,
) -> impl Iterator<Item = Violation> + 'a {
    rules.iter().filter_map(move |(name, rule)| {
        let what = rule(&Moment { store, change }).err()?;
        Some(Violation {
            rule: name.clone(),
            key: change.key.clone(),
            version: change.version,
            what,
        })
    })
}
