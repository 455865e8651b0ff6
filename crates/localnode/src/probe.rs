//! The verdict of a probe over its successive results. Pure: running the probe is `probe_run`'s work.

use k8s_openapi::api::core::v1::Probe;
use std::time::Duration;

/// Which of a container's three probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProbeKind {
    /// Until it succeeds the others wait; if it fails for good the container is restarted.
    Startup,
    /// Decides whether the container is ready; never restarts it.
    Readiness,
    /// If it fails for good the container is restarted.
    Liveness,
}

impl ProbeKind {
    /// The word in `Liveness probe failed: …`.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }

    /// The word in `failed liveness probe`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Readiness => "readiness",
            Self::Liveness => "liveness",
        }
    }
}

/// The timing of a probe, with the API's defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// Time from the container's start to the first try.
    pub(crate) initial_delay: Duration,
    /// Time between tries.
    pub(crate) period: Duration,
    /// Longest duration of one try.
    pub(crate) timeout: Duration,
    failures_needed: u32,
    successes_needed: u32,
}

impl Schedule {
    /// Reads a probe's numbers.
    pub(crate) fn of(probe: &Probe) -> Self {
        let seconds = |value: Option<i32>, default: i32, least: i32| {
            Duration::from_secs(value.unwrap_or(default).max(least).unsigned_abs().into())
        };
        let count =
            |value: Option<i32>, default: i32| value.unwrap_or(default).max(1).unsigned_abs();
        Self {
            initial_delay: seconds(probe.initial_delay_seconds, 0, 0),
            period: seconds(probe.period_seconds, 10, 1),
            timeout: seconds(probe.timeout_seconds, 1, 1),
            failures_needed: count(probe.failure_threshold, 3),
            successes_needed: count(probe.success_threshold, 1),
        }
    }
}

/// What a probe's history says now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not enough results yet.
    Unknown,
    /// Passed its success threshold last.
    Healthy,
    /// Passed its failure threshold last.
    Unhealthy,
}

/// Counts results and changes its verdict at the thresholds.
#[derive(Debug, Clone)]
pub(crate) struct ProbeHistory {
    schedule: Schedule,
    verdict: Verdict,
    successes: u32,
    failures: u32,
}

impl ProbeHistory {
    /// A probe that has not run yet.
    pub(crate) fn new(schedule: Schedule) -> Self {
        Self { schedule, verdict: Verdict::Unknown, successes: 0, failures: 0 }
    }

    /// Takes one result and returns the verdict after it.
    pub(crate) fn observe(&mut self, success: bool) -> Verdict {
        if success {
            self.failures = 0;
            self.successes += 1;
        } else {
            self.successes = 0;
            self.failures += 1;
        }
        if self.successes >= self.schedule.successes_needed {
            self.verdict = Verdict::Healthy;
        } else if self.failures >= self.schedule.failures_needed {
            self.verdict = Verdict::Unhealthy;
        }
        self.verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_change_at_the_thresholds() {
        let probe =
            Probe { failure_threshold: Some(2), success_threshold: Some(2), ..Probe::default() };
        let mut history = ProbeHistory::new(Schedule::of(&probe));
        let verdicts: Vec<Verdict> =
            [true, true, false, true, false, false, true, true].map(|r| history.observe(r)).into();
        use Verdict::{Healthy, Unhealthy, Unknown};
        assert_eq!(
            verdicts,
            [Unknown, Healthy, Healthy, Healthy, Healthy, Unhealthy, Unhealthy, Healthy]
        );
    }

    #[test]
    fn missing_numbers_take_the_apis_defaults() {
        let schedule = Schedule::of(&Probe::default());
        assert_eq!(schedule.period.as_secs(), 10);
        assert_eq!(schedule.timeout.as_secs(), 1);
        assert_eq!((schedule.failures_needed, schedule.successes_needed), (3, 1));
    }
}
