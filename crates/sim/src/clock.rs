//! The simulated cluster's time: tokio's clock, so that a paused runtime makes it virtual.
//!
//! Nothing in this crate reads any other clock.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Where simulated time starts unless told otherwise: a round date that no test mistakes for today.
const EPOCH_SECONDS: i64 = 1_767_225_600; // 2026-01-01T00:00:00Z

/// Time as the API server sees it. Cloning copies the present offset.
#[derive(Clone, Debug)]
pub struct Clock {
    epoch: Timestamp,
    start: Instant,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::starting_at(
            Timestamp::from_second(EPOCH_SECONDS).expect("the constant lies within jiff's range"),
        )
    }
}

impl Clock {
    /// A clock that shows `epoch` now. A program that serves people passes the real time.
    pub fn starting_at(epoch: Timestamp) -> Clock {
        Clock { epoch, start: Instant::now() }
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.epoch.saturating_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// Time since the start, unaffected by `jump`; what traces record.
    pub fn elapsed(&self) -> SignedDuration {
        SignedDuration::try_from(self.start.elapsed()).unwrap_or(SignedDuration::MAX)
    }

    /// The tokio instant at which this clock will show `at`; now when that is past.
    pub fn instant(&self, at: Timestamp) -> Instant {
        let wait = at.duration_since(self.now());
        Instant::now() + std::time::Duration::try_from(wait).unwrap_or_default()
    }

    /// Moves the shown time by `by` without time passing: a clock-jump fault (design.md section 4).
    pub fn jump(&mut self, by: SignedDuration) {
        self.epoch = self.epoch.saturating_add(by).unwrap_or(self.epoch);
    }
}

/// RFC 3339 with whole seconds, as `metav1.Time` prints.
pub fn seconds(at: Timestamp) -> String {
    let whole = Timestamp::from_second(at.as_second()).unwrap_or(at);
    whole.to_string()
}

/// RFC 3339 with six fractional digits, as `metav1.MicroTime` prints.
pub fn micros(at: Timestamp) -> String {
    format!("{at:.6}")
}
