//! The only reading of the system clock. Everything else is told the time.
//!
//! Delays use the runtime's steady clock, so a wall clock that jumps does not hurry or hold a
//! retry (fault catalogue G-32).

use jiff::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The wall-clock time.
    fn now(&self) -> Timestamp;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
