//! What the node knows of one container. Plain data: changed by the pod's worker, read by `next` and
//! `status`.

use crate::backoff::Backoff;
use crate::process::Exit;
use jiff::Timestamp;

/// The part a container plays in its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs to success before the next may start.
    Init,
    /// An init container that goes on running beside the others.
    Sidecar,
    /// An ordinary container.
    App,
}

/// How a container's run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Exit code and signal.
    pub(crate) exit: Exit,
    /// `Completed`, `Error`, `StartError`.
    pub(crate) reason: &'static str,
    /// The termination message.
    pub(crate) message: String,
    /// When it began.
    pub(crate) started: Timestamp,
    /// When it ended.
    pub(crate) finished: Timestamp,
    /// The run's number within the pod.
    pub(crate) run: u32,
}

/// What a container does now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Situation {
    /// Has not been started, or is not to be started yet.
    Waiting {
        /// A kubelet's reason, such as `CrashLoopBackOff`.
        reason: &'static str,
        /// The reason in words.
        message: String,
    },
    /// Its process runs.
    Running {
        /// Since when.
        since: Timestamp,
        /// Its startup probe has succeeded, or it has none.
        started: bool,
        /// Its readiness probe has succeeded, or it has none.
        ready: bool,
    },
    /// Its last run is over and none is due.
    Ended(Ending),
}

/// One container of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerRecord {
    /// Its name.
    pub(crate) name: String,
    /// Its part.
    pub(crate) role: Role,
    /// What it does.
    pub(crate) situation: Situation,
    /// The run before this one.
    pub(crate) last: Option<Ending>,
    /// How often it was started again.
    pub(crate) restarts: i32,
    /// Number of the current or last run; 0 before the first.
    pub(crate) run: u32,
    /// No start before this moment.
    pub(crate) not_before: Option<Timestamp>,
    /// History of crashes.
    pub(crate) crashes: Backoff,
    /// History of failed pulls.
    pub(crate) pulls: Backoff,
}

impl ContainerRecord {
    /// A container that has not been looked at.
    pub(crate) fn new(name: &str, role: Role) -> Self {
        let reason = if role == Role::App { "ContainerCreating" } else { "PodInitializing" };
        Self {
            name: name.to_owned(),
            role,
            situation: Situation::Waiting { reason, message: String::new() },
            last: None,
            restarts: 0,
            run: 0,
            not_before: None,
            crashes: Backoff::default(),
            pulls: Backoff::default(),
        }
    }

    /// Puts it into waiting, for a reason.
    pub(crate) fn wait_for(&mut self, reason: &'static str, message: String) {
        self.situation = Situation::Waiting { reason, message };
    }

    /// Whether it waits for objects that its configuration needs.
    pub(crate) fn waits_for_configuration(&self) -> bool {
        matches!(self.situation, Situation::Waiting { reason: "CreateContainerConfigError", .. })
    }

    /// Whether it waits for its image.
    pub(crate) fn waits_for_image(&self) -> bool {
        matches!(
            self.situation,
            Situation::Waiting {
                reason: "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName",
                ..
            }
        )
    }

    /// Whether its process runs.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.situation, Situation::Running { .. })
    }

    /// Whether it counts as ready: running with its probes content, or an init container that is done.
    pub(crate) fn is_ready(&self) -> bool {
        match &self.situation {
            Situation::Running { started, ready, .. } => {
                *started && *ready && self.role != Role::Init
            }
            Situation::Ended(ending) => self.role == Role::Init && ending.exit.code == 0,
            Situation::Waiting { .. } => false,
        }
    }

    /// Whether a start is allowed by the clock.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.not_before.is_none_or(|moment| moment <= now)
    }
}
