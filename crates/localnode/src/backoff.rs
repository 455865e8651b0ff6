//! The delay a kubelet keeps between restarts of a crashing container and between image pulls.
//! Pure: the caller brings the clock.

use std::time::Duration;

/// First delay (kubelet's `MaxContainerBackOff` neighbourhood: 10 s, doubling to 5 min).
const FIRST: Duration = Duration::from_secs(10);
/// Longest delay.
const LONGEST: Duration = Duration::from_secs(300);
/// A container that ran this long is forgiven its past.
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);

/// The history of one container's crashes or one image's failed pulls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Counts one failure after `ran_for` and says how long to wait.
    ///
    /// The first crash restarts at once, as a kubelet does: its delay begins with the second.
    pub(crate) fn crashed(&mut self, ran_for: Duration) -> Duration {
        if ran_for >= FORGIVEN_AFTER {
            self.failures = 0;
        }
        self.failures += 1;
        match self.failures {
            1 => Duration::ZERO,
            n => delay(n - 1),
        }
    }

    /// Counts one failed pull and says how long to wait before the next.
    pub(crate) fn pull_failed(&mut self) -> Duration {
        self.failures += 1;
        delay(self.failures)
    }
}

fn delay(step: u32) -> Duration {
    let doubled = FIRST.saturating_mul(1 << (step - 1).min(8));
    doubled.min(LONGEST)
}

/// A duration as the kubelet prints it in `back-off 2m40s restarting failed container`.
pub(crate) fn in_words(delay: Duration) -> String {
    match (delay.as_secs() / 60, delay.as_secs() % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crashes_wait_ten_seconds_doubling_to_five_minutes() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> =
            (0..8).map(|_| backoff.crashed(Duration::from_secs(1)).as_secs()).collect();
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(backoff.crashed(Duration::from_secs(601)).as_secs(), 0);
    }

    #[test]
    fn pulls_wait_from_the_first_failure() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..3).map(|_| backoff.pull_failed().as_secs()).collect();
        assert_eq!(waits, [10, 20, 40]);
    }

    #[test]
    fn durations_read_like_a_kubelets() {
        assert_eq!(in_words(Duration::from_secs(10)), "10s");
        assert_eq!(in_words(Duration::from_secs(160)), "2m40s");
        assert_eq!(in_words(Duration::from_secs(300)), "5m0s");
    }
}
