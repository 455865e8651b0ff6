//! From pods, claims and Events to the cause that keeps a rollout back.
//!
//! StatefulSets publish no conditions, so the cause of a stall is read where it appears (reference
//! /database.md section 5). Must not decide what follows from a cause.

use k8s_openapi::api::core::v1::{ContainerStatus, PersistentVolumeClaim, Pod};
use phased::Reason;
use phased::fact::SeenEvent;
use phased::ladder::Finding;

use super::reason;
use super::servers::GUARD_CONTAINER;

/// Longest part of a container's last words that is repeated, in characters.
const WORDS_LIMIT: usize = 500;

/// A cause, and whether only a person can end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What it is.
    pub finding: Finding,
    /// Whether waiting is pointless.
    pub terminal: bool,
}

impl Cause {
    fn passing(reason: &'static Reason, message: String) -> Self {
        Self { finding: Finding::new(reason, message), terminal: false }
    }
}

/// The cause that a pod shows.
pub fn of_pod(name: &str, pod: &Pod) -> Option<Cause> {
    let status = pod.status.as_ref()?;
    let guard = status.init_container_statuses.iter().flatten();
    guard
        .filter(|c| c.name == GUARD_CONTAINER)
        .find_map(guard_words)
        .or_else(|| unschedulable(name, pod))
        .or_else(|| {
            let all = status.init_container_statuses.iter().chain(&status.container_statuses);
            all.flatten().find_map(|c| of_container(name, c))
        })
}

/// The guard's refusal, by the reason's name at the beginning of a line.
fn guard_words(container: &ContainerStatus) -> Option<Cause> {
    let words = last_words(container)?;
    let known = [&reason::DATA_MISSING, &reason::HALF_INITIALISED, &reason::DATA_VERSION_MISMATCH];
    known.into_iter().find_map(|reason| {
        let line = words.lines().find_map(|l| l.trim().strip_prefix(reason.name))?;
        let message = line.trim_start_matches(':').trim();
        let message = format!("{message}. {}", reason.remedy);
        Some(Cause { finding: Finding::new(reason, message), terminal: true })
    })
}

fn unschedulable(name: &str, pod: &Pod) -> Option<Cause> {
    let conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let found = conditions.into_iter().find(|c| {
        c.type_ == "PodScheduled"
            && c.status == "False"
            && c.reason.as_deref() == Some("Unschedulable")
    })?;
    let said = found.message.as_deref().unwrap_or("no node fits");
    Some(Cause::passing(&reason::POD_UNSCHEDULABLE, format!("pod {name}: {said}")))
}

fn of_container(pod: &str, container: &ContainerStatus) -> Option<Cause> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let why = waiting.reason.as_deref()?;
    let said = waiting.message.as_deref().unwrap_or_default();
    let at = format!("pod {pod}, container {}", container.name);
    match why {
        "ErrImagePull"
        | "ImagePullBackOff"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "ErrInspectImage"
        | "RegistryUnavailable" => Some(Cause::passing(
            &reason::IMAGE_PULL_FAILED,
            format!("{at}: image {:?} cannot be pulled ({why})", container.image),
        )),
        "CrashLoopBackOff" => {
            let words = last_words(container).unwrap_or_default();
            let code = container.last_state.as_ref().and_then(|s| s.terminated.as_ref());
            let code = code.map_or_else(String::new, |t| format!(" with code {}", t.exit_code));
            Some(Cause::passing(
                &reason::CONTAINER_CRASHING,
                format!("{at} ended{code}: {}", shortened(&words)),
            ))
        }
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
            Some(Cause::passing(&reason::CONTAINER_CONFIG_ERROR, format!("{at}: {said} ({why})")))
        }
        _ => None,
    }
}

/// What the container said when it last ended.
fn last_words(container: &ContainerStatus) -> Option<String> {
    let ended = |state: &Option<k8s_openapi::api::core::v1::ContainerState>| {
        state.as_ref()?.terminated.clone().filter(|t| t.exit_code != 0)
    };
    ended(&container.state).or_else(|| ended(&container.last_state))?.message
}

/// The end of a text: the last words tell most.
fn shortened(words: &str) -> String {
    let trimmed = words.trim();
    let length = trimmed.chars().count();
    if length <= WORDS_LIMIT {
        return trimmed.to_owned();
    }
    let tail: String = trimmed.chars().skip(length - WORDS_LIMIT).collect();
    format!("…{tail}")
}

/// The cause that the newest warning tells.
pub fn of_events(events: &[SeenEvent]) -> Option<Cause> {
    events.iter().rev().filter(|e| e.kind == "Warning").find_map(of_event)
}

fn of_event(event: &SeenEvent) -> Option<Cause> {
    let message = format!("{}: {}", event.object, event.message);
    let quota = event.message.contains("exceeded quota");
    let reason = match event.reason.as_str() {
        "FailedCreate" if quota => &reason::QUOTA_EXCEEDED,
        "FailedCreate" => &reason::ADMISSION_REFUSED,
        "ProvisioningFailed" if quota => &reason::QUOTA_EXCEEDED,
        "ProvisioningFailed" | "FailedBinding" | "FailedMount" | "FailedAttachVolume" => {
            &reason::VOLUME_PENDING
        }
        "FailedScheduling" => &reason::POD_UNSCHEDULABLE,
        _ => return None,
    };
    Some(Cause::passing(reason, message))
}

/// The cause that a claim shows by itself.
pub fn of_claim(name: &str, claim: &PersistentVolumeClaim) -> Option<Cause> {
    let phase = claim.status.as_ref().and_then(|s| s.phase.as_deref());
    match phase {
        Some("Pending") => {
            Some(Cause::passing(&reason::VOLUME_PENDING, format!("claim {name} has no volume yet")))
        }
        Some("Lost") => {
            Some(Cause::passing(&reason::VOLUME_PENDING, format!("claim {name} lost its volume")))
        }
        _ => None,
    }
}
