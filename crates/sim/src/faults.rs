//! Faults at the service layer and the log of requests (design.md section 4).

use crate::seed::Seed;

/// Rules for faults, and what was requested so far.
pub struct Faults {
    pub(crate) seed: Seed,
}

impl Faults {
    /// No faults.
    pub fn new(seed: Seed) -> Faults {
        Faults { seed }
    }
}
