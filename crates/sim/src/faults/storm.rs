//! Every fault of the service layer at once, left to the seed: what soak runs use.

use std::time::Duration;

use super::{Effect, Faults, Match, Often, Rule, RuleId};

impl Faults {
    /// Adds rules for every effect: each hits a request of `client` with probability `p`. Watches
    /// are hit ten times as often, since there are far fewer of them. Denials, silence and lost events
    /// are left out: only a script knows when they should end. `Faults::remove` ends each rule.
    pub fn storm(&mut self, client: &str, p: f64) -> Vec<RuleId> {
        let reads = || Match::verbs(&["get", "list"]).by(client);
        let writes = || Match::writes().by(client);
        let watches = || Match::verbs(&["watch"]).by(client);
        let respond = |code, retry_after| Effect::Respond { code, retry_after };
        let seldom = Often::Chance(p);
        let often = Often::Chance((p * 10.0).min(0.5));
        let rules = [
            Rule::new(writes(), seldom, respond(409, None)),
            Rule::new(Match::any().by(client), seldom, respond(429, Some(1))),
            Rule::new(Match::any().by(client), seldom, respond(500, None)),
            Rule::new(Match::any().by(client), seldom, respond(503, None)),
            Rule::new(Match::any().by(client), seldom, respond(504, None)),
            Rule::new(writes(), seldom, Effect::LostReply),
            Rule::new(writes(), seldom, Effect::Timeout(Duration::from_secs(30))),
            Rule::new(Match::any().by(client), seldom, Effect::Slow(Duration::from_millis(400))),
            Rule::new(reads(), seldom, Effect::Stale(1)),
            Rule::new(reads(), seldom, Effect::Stale(5)),
            Rule::new(watches(), often, Effect::CutWatch(0)),
            Rule::new(watches(), often, Effect::CutWatch(2)),
            Rule::new(watches(), often, Effect::DuplicateEvents),
            Rule::new(watches(), often, Effect::DelayEvents(Duration::from_secs(3))),
            Rule::new(watches(), seldom, Effect::Gone),
        ];
        rules.into_iter().map(|rule| self.add(rule)).collect()
    }
}
