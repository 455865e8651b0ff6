//! When a resource is looked at next: how its pass ended becomes a delay.
//!
//! Must not run a pass, and must not draw time or chance: both are passed in.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use phased::fact::Fate;
use phased::{ObjectId, Wake};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::pass::End;
use crate::random::{Random, jitter};

/// What resources failed at, and how often in a row.
#[derive(Default)]
pub(crate) struct Pace {
    failures: BTreeMap<ObjectId, Failures>,
}

/// One count a family of delays: a row of conflicts says nothing about how long the world needs.
#[derive(Clone, Copy, Default)]
struct Failures {
    looks: u32,
    world: u32,
    person: u32,
}

/// What a delay depends on besides the pass.
pub(crate) struct Moment<'a> {
    /// Now, by the steady clock.
    pub(crate) now: Instant,
    /// Now, by the clock of plans.
    pub(crate) clock: Timestamp,
    /// How often a resource is looked at although nothing changed.
    pub(crate) resync: Duration,
    /// Jitter.
    pub(crate) random: &'a dyn Random,
}

/// When the next pass is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Next {
    /// When the resource wants to be looked at.
    pub(crate) at: Instant,
    /// Before that nothing else makes us look either: the server asked for it.
    pub(crate) not_before: Option<Instant>,
}

/// The longest that jitter puts a wake-up off.
const SPREAD_LIMIT: Duration = Duration::from_secs(30);

impl Pace {
    /// The time after a pass that ended so; `None` when the resource is gone.
    pub(crate) fn next(&mut self, id: &ObjectId, end: &End, moment: &Moment<'_>) -> Option<Next> {
        let (delay, hold) = match end {
            End::Gone => {
                self.failures.remove(id);
                return None;
            }
            End::Settled(wake) => (self.settled(id, wake, moment), None),
            End::Wrote | End::LookAgain => (self.look_again(id, moment), None),
            End::Troubled { fate, retry_after } => {
                let hold = retry_after.map(|asked| spread(asked, moment.random));
                (self.troubled(id, *fate, moment).max(hold.unwrap_or_default()), hold)
            }
        };
        Some(Next { at: moment.now + delay, not_before: hold.map(|hold| moment.now + hold) })
    }

    /// Resources whose last pass did not settle.
    pub(crate) fn unsettled(&self) -> usize {
        self.failures.len()
    }

    fn settled(&mut self, id: &ObjectId, wake: &Wake, moment: &Moment<'_>) -> Duration {
        let resync = moment.resync.mul_f64(jitter(moment.random, 0.1));
        let asked = delay_of(wake, moment.clock);
        // A plan that wants another look at once, pass after pass, gets it at a growing distance:
        // whatever it waits for, no hot loop is possible.
        if asked.is_some_and(|delay| delay.is_zero()) {
            return self.look_again(id, moment);
        }
        self.failures.remove(id);
        asked.map_or(resync, |delay| spread(delay, moment.random).min(resync))
    }

    fn look_again(&mut self, id: &ObjectId, moment: &Moment<'_>) -> Duration {
        let looks = &mut self.failures.entry(id.clone()).or_default().looks;
        *looks = looks.saturating_add(1);
        Backoff::LOOK_AGAIN.delay(*looks, moment.random)
    }

    fn troubled(&mut self, id: &ObjectId, fate: Fate, moment: &Moment<'_>) -> Duration {
        let failures = self.failures.entry(id.clone()).or_default();
        let (count, backoff) = match fate {
            Fate::UserMustAct => (&mut failures.person, Backoff::PERSON),
            Fate::WorldMayHeal | Fate::WeAreWrong => (&mut failures.world, Backoff::WORLD),
        };
        *count = count.saturating_add(1);
        backoff.delay(*count, moment.random)
    }
}

/// A delay that was asked for, put off by up to a tenth: resources that wait for the same moment do
/// not all come in it. Never earlier than asked.
fn spread(delay: Duration, random: &dyn Random) -> Duration {
    let share = jitter(random, 0.5) - 0.5;
    delay + (delay / 10).min(SPREAD_LIMIT).mul_f64(share.clamp(0.0, 1.0))
}

/// The wake-up as a delay of the steady clock; `None` for "only on change".
fn delay_of(wake: &Wake, clock: Timestamp) -> Option<Duration> {
    match wake {
        Wake::Now => Some(Duration::ZERO),
        Wake::OnChange => None,
        Wake::At(at) => {
            let ahead = at.duration_since(clock);
            // A moment is added so that the clock has certainly reached the asked time.
            let ahead = ahead.saturating_add(jiff::SignedDuration::from_millis(1));
            let ahead = Duration::try_from(ahead).unwrap_or(Duration::ZERO);
            Some(if ahead <= Duration::from_millis(1) { Duration::ZERO } else { ahead })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededRandom;
    use phased::KindRef;
    use std::collections::BTreeSet;

    const KIND: KindRef =
        KindRef { group: "g", version: "v1", kind: "K", plural: "ks", namespaced: true };
    const HOUR: Duration = Duration::from_secs(3600);

    fn id(name: &str) -> ObjectId {
        ObjectId::new(KIND, "ns", name)
    }

    fn moment(random: &SeededRandom) -> Moment<'_> {
        Moment { now: Instant::now(), clock: Timestamp::UNIX_EPOCH, resync: HOUR, random }
    }

    fn delay(pace: &mut Pace, name: &str, end: End, moment: &Moment<'_>) -> Duration {
        let next = pace.next(&id(name), &end, moment).expect("it is not gone");
        next.at - moment.now
    }

    fn troubled(fate: Fate) -> End {
        End::Troubled { fate, retry_after: None }
    }

    #[test]
    fn a_row_of_conflicts_does_not_slow_the_first_retry_after_a_trouble() {
        let random = SeededRandom::new(1);
        let (mut pace, moment) = (Pace::default(), moment(&random));
        for _ in 0..20 {
            delay(&mut pace, "a", End::LookAgain, &moment);
        }
        let first = delay(&mut pace, "a", troubled(Fate::WorldMayHeal), &moment);
        assert!(first < Duration::from_millis(1300), "{first:?}");
        for _ in 0..20 {
            delay(&mut pace, "a", troubled(Fate::WorldMayHeal), &moment);
        }
        let person = delay(&mut pace, "a", troubled(Fate::UserMustAct), &moment);
        assert!(person < Duration::from_millis(2500), "{person:?}");
        assert!(delay(&mut pace, "a", troubled(Fate::WorldMayHeal), &moment) > HOUR / 90);
        delay(&mut pace, "a", End::Settled(Wake::OnChange), &moment);
        assert_eq!(pace.unsettled(), 0, "a settled pass forgets them all");
    }

    #[test]
    fn g_22_resources_that_asked_for_the_same_moment_do_not_come_in_step() {
        let random = SeededRandom::new(2);
        let (mut pace, moment) = (Pace::default(), moment(&random));
        let asked = Duration::from_secs(60);
        let wake = || End::Settled(Wake::after(moment.clock, 60));
        let delays: BTreeSet<Duration> =
            (0..100).map(|n| delay(&mut pace, &n.to_string(), wake(), &moment)).collect();
        assert!(delays.len() > 90, "{} different delays", delays.len());
        let (first, last) = (delays.first().copied(), delays.last().copied());
        assert!(first >= Some(asked), "none before its time: {first:?}");
        assert!(last <= Some(asked + asked / 9), "none long after it: {last:?}");
        assert!(last >= first.map(|f| f + Duration::from_secs(4)), "spread: {first:?} {last:?}");
    }

    #[test]
    fn a_server_that_asked_for_patience_is_not_met_in_step_either() {
        let random = SeededRandom::new(3);
        let (mut pace, moment) = (Pace::default(), moment(&random));
        let asked = Duration::from_secs(30);
        let end = End::Troubled { fate: Fate::WorldMayHeal, retry_after: Some(asked) };
        let holds: BTreeSet<Instant> = (0..20)
            .filter_map(|n| pace.next(&id(&n.to_string()), &end, &moment)?.not_before)
            .collect();
        assert_eq!(holds.len(), 20);
        assert!(holds.first() >= Some(&(moment.now + asked)));
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let random = SeededRandom::new(4);
        let (mut pace, moment) = (Pace::default(), moment(&random));
        delay(&mut pace, "a", End::LookAgain, &moment);
        assert_eq!(pace.unsettled(), 1);
        assert_eq!(pace.next(&id("a"), &End::Gone, &moment), None);
        assert_eq!(pace.unsettled(), 0);
    }
}
