//! Faults at the service layer, and the log of requests (design.md section 4, issue 2).
//!
//! A rule says which requests it hits, how often, and what happens to them. Each rule counts how
//! often it fired. Nothing here touches objects; `service` and `watch` carry the effects out.

mod client;
mod log;
mod rule;
mod storm;

pub use client::{ClientId, Crash};
pub use log::Entry;
pub use rule::{Effect, Match, Often, Rule};

use std::collections::BTreeMap;

use crate::seed::Seed;
use client::Client;
pub(crate) use client::Life;
pub(crate) use log::digest;

/// Identity of a rule.
pub type RuleId = usize;

/// Rules for faults, the clients they hit, and what was requested so far.
pub struct Faults {
    seed: Seed,
    rules: Vec<Armed>,
    clients: Vec<Client>,
    log: Vec<Entry>,
    /// Watches that began before this count are cut.
    cuts: u64,
}

struct Armed {
    rule: Rule,
    matched: u64,
    fired: u64,
    active: bool,
}

/// One request, as far as rules look at it.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
    /// API group.
    pub group: String,
    /// Plural; empty for discovery and the like.
    pub plural: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// Namespace; empty for none or all.
    pub namespace: String,
    /// Name; empty for collections.
    pub name: String,
    /// Name of the client handle.
    pub client: String,
    /// `User-Agent` header.
    pub agent: String,
}

impl Faults {
    /// No faults; whatever is left to chance is drawn from `seed`.
    pub fn new(seed: Seed) -> Faults {
        Faults { seed, rules: Vec::new(), clients: Vec::new(), log: Vec::new(), cuts: 0 }
    }

    /// Adds a rule; later rules are asked after earlier ones.
    pub fn add(&mut self, rule: Rule) -> RuleId {
        self.rules.push(Armed { rule, matched: 0, fired: 0, active: true });
        self.rules.len() - 1
    }

    /// Switches a rule off; its counter stays readable.
    pub fn remove(&mut self, id: RuleId) {
        if let Some(armed) = self.rules.get_mut(id) {
            armed.active = false;
        }
    }

    /// Switches every rule off.
    pub fn clear(&mut self) {
        self.rules.iter_mut().for_each(|armed| armed.active = false);
    }

    /// How often a rule took effect.
    pub fn fired(&self, id: RuleId) -> u64 {
        self.rules.get(id).map_or(0, |armed| armed.fired)
    }

    /// How often each kind of effect took effect, over all rules, crashes included.
    pub fn fired_by_effect(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for armed in &self.rules {
            *counts.entry(armed.rule.effect.name()).or_insert(0) += armed.fired;
        }
        let crashed = self.clients.iter().filter(|client| client.dead).count() as u64;
        if crashed > 0 {
            counts.insert("crash", crashed);
        }
        counts
    }

    /// The effects that hit this request, in the order of their rules. Effects that are only known
    /// to happen later (of watches) are counted by `count`.
    pub(crate) fn draw(&mut self, asked: &Asked) -> Vec<(RuleId, Effect)> {
        let mut hits = Vec::new();
        for (id, armed) in self.rules.iter_mut().enumerate() {
            if !armed.active || !armed.rule.when.hits(asked) {
                continue;
            }
            armed.matched += 1;
            let hit = match armed.rule.often {
                Often::Always => true,
                Often::Nth(n) => armed.matched == n,
                Often::First(n) => armed.matched <= n,
                Often::Every(n) => n > 0 && armed.matched % n == 0,
                Often::Chance(p) => self.seed.chance(p),
            };
            if hit {
                if !armed.rule.effect.is_of_stream() {
                    armed.fired += 1;
                }
                hits.push((id, armed.rule.effect.clone()));
            }
        }
        hits
    }

    /// Counts an effect of a watch at the moment it takes place.
    pub(crate) fn count(&mut self, id: RuleId) {
        if let Some(armed) = self.rules.get_mut(id) {
            armed.fired += 1;
        }
    }

    /// Whether a rule would deny `asked`, without counting: what an access review asks.
    pub(crate) fn denies(&self, asked: &Asked) -> bool {
        self.rules.iter().any(|armed| {
            armed.active
                && matches!(armed.rule.effect, Effect::Deny { .. })
                && armed.rule.when.hits(asked)
        })
    }

    /// Marks every open watch for cutting; `Cluster::cut_watches` also wakes them.
    pub(crate) fn cut(&mut self) {
        self.cuts += 1;
    }

    pub(crate) fn cuts(&self) -> u64 {
        self.cuts
    }
}
