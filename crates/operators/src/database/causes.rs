//! Causes as a Database's pods show them: the guard's own words before anything else.
//!
//! Must not decide what follows from a cause.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use phased::Reason;
use phased::ladder::Finding;

use super::reason;
use super::servers::GUARD_CONTAINER;
use crate::parts::causes::last_words;
pub use crate::parts::causes::{Cause, of_claim, of_events, of_probe};

/// What the guard says when it lets no server start, by the reason's name.
const GUARDED: [&Reason; 5] = [
    &reason::DATA_MISSING,
    &reason::HALF_INITIALISED,
    &reason::DATA_VERSION_MISMATCH,
    &reason::NOT_A_STANDBY,
    &reason::STANDBY_COPY_FAILED,
];

/// Whether a cause is in the guard's words.
pub fn is_guards(cause: &Cause) -> bool {
    GUARDED.contains(&cause.finding.reason)
}

/// The cause that a pod shows.
pub fn of_pod(name: &str, pod: &Pod) -> Option<Cause> {
    let guard = pod.status.as_ref()?.init_container_statuses.iter().flatten();
    guard
        .filter(|c| c.name == GUARD_CONTAINER && !c.ready)
        .find_map(guard_words)
        .or_else(|| crate::parts::causes::of_pod(name, pod))
}

/// The guard's refusal, by the reason's name at the beginning of a line.
fn guard_words(container: &ContainerStatus) -> Option<Cause> {
    let words = last_words(container)?;
    GUARDED.into_iter().find_map(|reason| {
        let line = words.lines().find_map(|l| l.trim().strip_prefix(reason.name))?;
        let message = line.trim_start_matches(':').trim();
        // The guard of a standby tries to copy again and again; the others only a person can end.
        let terminal = reason != &reason::STANDBY_COPY_FAILED;
        Some(Cause { finding: Finding::new(reason, message), terminal })
    })
}
