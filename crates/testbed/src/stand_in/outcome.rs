//! What can become of a pod.

use k8s_openapi::api::core::v1::Pod;

/// A pod's fate, as the kubelet or the scheduler would report it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Runs and passes its readiness probe.
    Ready,
    /// Runs and fails its readiness probe.
    NotReady,
    /// Is on its node with containers being created, and stays so.
    Starting,
    /// Ends well (phase `Succeeded`).
    Completed,
    /// Ends badly for good (phase `Failed`).
    Failed {
        /// Exit code of every container.
        exit_code: i32,
        /// Termination message.
        message: String,
    },
    /// The image cannot be pulled.
    ImagePullBackOff {
        /// What the registry said.
        message: String,
    },
    /// Ends soon after each start.
    CrashLoopBackOff {
        /// Exit code of the last run.
        exit_code: i32,
        /// Termination message of the last run.
        message: String,
    },
    /// No node suits it.
    Unschedulable {
        /// The scheduler's explanation.
        message: String,
    },
    /// Nobody touches it: no scheduler, no kubelet.
    Untouched,
}

impl Outcome {
    /// The usual end: pods that are meant to stay become ready, the others complete.
    pub(crate) fn usual(pod: &Pod) -> Self {
        let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
        if matches!(policy, Some("Never" | "OnFailure")) { Self::Completed } else { Self::Ready }
    }
}
