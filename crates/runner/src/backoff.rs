//! Growing delays, bounded and with injected jitter.

use std::time::Duration;

use crate::random::{Random, jitter};

/// A family of delays.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// Delay after the first failure.
    pub first: Duration,
    /// Bound of the delay before jitter.
    pub longest: Duration,
}

impl Backoff {
    /// Watches that fail, and passes that the world may heal.
    pub const WORLD: Self =
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
    /// Views that were stale: a fresh one is usually there at once.
    pub const LOOK_AGAIN: Self =
        Self { first: Duration::from_millis(20), longest: Duration::from_secs(5) };
    /// Refusals that only a person can end, in case the end shows in nothing that we watch.
    pub const PERSON: Self =
        Self { first: Duration::from_secs(2), longest: Duration::from_secs(30) };

    /// The delay after `failures` in a row: doubling, bounded, 20 % jitter.
    pub fn delay(&self, failures: u32, random: &dyn Random) -> Duration {
        let factor = 2u32.saturating_pow(failures.saturating_sub(1).min(20));
        let plain = self.first.saturating_mul(factor).min(self.longest);
        plain.mul_f64(jitter(random, 0.2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededRandom;

    #[test]
    fn delays_grow_to_their_bound_and_stay_there() {
        let random = SeededRandom::new(1);
        let mut before = Duration::ZERO;
        for failures in 1..=6 {
            let delay = Backoff::WORLD.delay(failures, &random);
            assert!(delay > before, "{failures}: {delay:?} after {before:?}");
            before = delay;
        }
        for failures in [30, u32::MAX] {
            let delay = Backoff::WORLD.delay(failures, &random);
            assert!(delay <= Duration::from_secs(72), "{delay:?}");
            assert!(delay >= Duration::from_secs(48), "{delay:?}");
        }
    }
}
