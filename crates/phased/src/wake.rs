//! When to look again. Changes of watched objects always wake; this adds a time.
//!
//! Must not know a clock: times are points, counted from the snapshot's `now` by the caller.

use jiff::{SignedDuration, Timestamp};

/// The earliest moment at which a pass is due even if nothing changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// At once: this pass changed something that the next one builds on.
    Now,
    /// At this time at the latest.
    At(Timestamp),
    /// Only on change. The runner still looks again after its resync period.
    OnChange,
}

impl Wake {
    /// In `seconds` from `now`.
    pub fn after(now: Timestamp, seconds: i64) -> Self {
        now.checked_add(SignedDuration::from_secs(seconds)).map_or(Self::OnChange, Self::At)
    }

    /// The earlier of the two.
    #[must_use]
    pub fn earliest(self, other: Self) -> Self {
        match (self, other) {
            (Self::Now, _) | (_, Self::Now) => Self::Now,
            (Self::OnChange, w) | (w, Self::OnChange) => w,
            (Self::At(a), Self::At(b)) => Self::At(a.min(b)),
        }
    }
}
