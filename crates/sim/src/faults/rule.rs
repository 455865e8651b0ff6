//! Rules: which requests, how often, what happens.

use std::time::Duration;

use super::Asked;

/// A fault rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Which requests it may hit.
    pub when: Match,
    /// Which of these it hits.
    pub often: Often,
    /// What happens to them.
    pub effect: Effect,
}

impl Rule {
    /// A rule from its three parts.
    pub fn new(when: Match, often: Often, effect: Effect) -> Rule {
        Rule { when, often, effect }
    }
}

/// Which requests a rule may hit; an empty field hits all.
#[derive(Clone, Debug, Default)]
pub struct Match {
    /// Verbs, for example `["create", "patch"]`.
    pub verbs: Vec<&'static str>,
    /// API group, when a plural is given.
    pub group: String,
    /// Plural.
    pub plural: String,
    /// Subresource; `"-"` hits only requests without one.
    pub subresource: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Name of the client handle, or the start of its user agent.
    pub client: String,
}

/// Verbs that change something.
pub(super) const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

impl Match {
    /// All requests.
    pub fn any() -> Match {
        Match::default()
    }

    /// All requests that change something.
    pub fn writes() -> Match {
        Match { verbs: WRITES.to_vec(), ..Match::default() }
    }

    /// Requests with one of these verbs.
    pub fn verbs(verbs: &[&'static str]) -> Match {
        Match { verbs: verbs.to_vec(), ..Match::default() }
    }

    /// The same, but only for one kind of object.
    pub fn on(mut self, group: &str, plural: &str) -> Match {
        self.group = group.to_owned();
        self.plural = plural.to_owned();
        self
    }

    /// The same, but only for objects of this name.
    pub fn named(mut self, name: &str) -> Match {
        self.name = name.to_owned();
        self
    }

    /// The same, but only for this client.
    pub fn by(mut self, client: &str) -> Match {
        self.client = client.to_owned();
        self
    }

    /// The same, but only for this subresource; `"-"` means the object itself.
    pub fn subresource(mut self, subresource: &str) -> Match {
        self.subresource = subresource.to_owned();
        self
    }

    /// The same, but only in this namespace.
    pub fn within(mut self, namespace: &str) -> Match {
        self.namespace = namespace.to_owned();
        self
    }

    pub(super) fn hits(&self, asked: &Asked) -> bool {
        let equal = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let subresource = match self.subresource.as_str() {
            "-" => asked.subresource.is_empty(),
            wanted => equal(wanted, &asked.subresource),
        };
        let client = self.client.is_empty()
            || self.client == asked.client
            || asked.agent.starts_with(&self.client);
        (self.verbs.is_empty() || self.verbs.contains(&asked.verb))
            && (self.plural.is_empty()
                || (self.group == asked.group && self.plural == asked.plural))
            && subresource
            && equal(&self.namespace, &asked.namespace)
            && equal(&self.name, &asked.name)
            && client
    }
}

/// Which of the requests that match are hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Often {
    /// Each.
    Always,
    /// The nth, counted from 1.
    Nth(u64),
    /// The first n.
    First(u64),
    /// Every nth.
    Every(u64),
    /// Each with this probability, drawn from the seed.
    Chance(f64),
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Nothing is done; an HTTP error is answered: 409, 429, 500, 503, 504, …
    Respond {
        /// HTTP status code.
        code: u16,
        /// `Retry-After` in seconds.
        retry_after: Option<u32>,
    },
    /// The request is carried out, then the connection breaks.
    LostReply,
    /// Nothing is done, and the connection breaks after this long.
    Timeout(Duration),
    /// The request is carried out after this long.
    Slow(Duration),
    /// A 403 with this text after the usual opening: RBAC, quota or an admission policy.
    Deny {
        /// What follows "… is forbidden: ".
        message: String,
    },
    /// Gets and lists answer as of so many versions ago; a watch from a later version is refused,
    /// as by a replica that has not reached it.
    Stale(u64),
    /// A watch ends after so many events.
    CutWatch(u64),
    /// A watch says nothing more after so many events, and does not end: a connection that was cut
    /// without a reset.
    SilentWatch(u64),
    /// A watch loses every nth event.
    LoseEvents(u64),
    /// A watch sends every event twice.
    DuplicateEvents,
    /// A watch holds events back for this long.
    DelayEvents(Duration),
    /// A watch answers 200 and an ERROR event 410.
    Gone,
}

impl Effect {
    /// Its name in `Faults::fired_by_effect`.
    pub fn name(&self) -> &'static str {
        match self {
            Effect::Respond { code: 409, .. } => "respond-409",
            Effect::Respond { code: 429, .. } => "respond-429",
            Effect::Respond { code: 500, .. } => "respond-500",
            Effect::Respond { code: 503, .. } => "respond-503",
            Effect::Respond { code: 504, .. } => "respond-504",
            Effect::Respond { .. } => "respond-other",
            Effect::LostReply => "lost-reply",
            Effect::Timeout(_) => "timeout",
            Effect::Slow(_) => "slow",
            Effect::Deny { .. } => "deny",
            Effect::Stale(_) => "stale-read",
            Effect::CutWatch(_) => "cut-watch",
            Effect::SilentWatch(_) => "silent-watch",
            Effect::LoseEvents(_) => "lose-events",
            Effect::DuplicateEvents => "duplicate-events",
            Effect::DelayEvents(_) => "delay-events",
            Effect::Gone => "gone-410",
        }
    }

    /// Whether it happens while a watch runs, not when it is asked for.
    pub(super) fn is_of_stream(&self) -> bool {
        matches!(
            self,
            Effect::CutWatch(_)
                | Effect::SilentWatch(_)
                | Effect::LoseEvents(_)
                | Effect::DuplicateEvents
                | Effect::DelayEvents(_)
        )
    }
}
