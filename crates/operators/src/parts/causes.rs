//! From pods, claims and Events to the cause that keeps a rollout back.
//!
//! StatefulSets publish no conditions, so the cause of a stall is read where it appears. Must not decide what follows from a cause.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerStateTerminated, ContainerStatus, PersistentVolumeClaim, Pod,
};
use phased::Reason;
use phased::fact::SeenEvent;
use phased::ladder::Finding;

use super::reason;

/// Longest part of a container's last words that is repeated, in characters.
const WORDS_LIMIT: usize = 500;

/// How much of a log the kubelet keeps as a container's last words, in bytes.
const KEPT_BYTES: usize = 2048;
/// How long a server may run without being ready before its probe is told as the cause, in seconds.
const HUNG_SECONDS: i64 = 30;

/// Who is to make a claim's volume: written by the cluster's own controllers.
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";

/// A cause, and whether only a person can end it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What it is.
    pub finding: Finding,
    /// Whether waiting is pointless.
    pub terminal: bool,
}

impl Cause {
    pub(crate) fn passing(reason: &'static Reason, message: String) -> Self {
        Self { finding: Finding::new(reason, message), terminal: false }
    }
}

/// The cause that a pod shows.
pub(crate) fn of_pod(name: &str, pod: &Pod) -> Option<Cause> {
    let status = pod.status.as_ref()?;
    unschedulable(name, pod).or_else(|| lost_node(name, pod)).or_else(|| {
        let all = status.init_container_statuses.iter().chain(&status.container_statuses);
        all.flatten().find_map(|c| of_container(name, c))
    })
}

/// The silence of a pod's node. The cluster's own controllers then take the pod for not ready, and
/// all else stands as the kubelet said it last; a kubelet that says so itself gives a reason.
fn lost_node(name: &str, pod: &Pod) -> Option<Cause> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let state = |kind: &str| conditions.iter().find(|c| c.type_ == kind);
    let ready = state("Ready")?;
    let by_others = ready.status == "False" && ready.reason.as_deref().is_none_or(str::is_empty);
    if !by_others || state("ContainersReady")?.status != "True" {
        return None;
    }
    let node = pod.spec.as_ref()?.node_name.as_deref()?;
    let mut message = format!("pod {name}: node {node} is not heard from");
    if pod.metadata.deletion_timestamp.is_some() {
        message.push_str("; the pod is to be deleted, and stays until the node answers");
    }
    Some(Cause::passing(&reason::NODE_LOST, message))
}

fn unschedulable(name: &str, pod: &Pod) -> Option<Cause> {
    let conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let found = conditions.into_iter().find(|c| {
        c.type_ == "PodScheduled"
            && c.status == "False"
            && c.reason.as_deref() == Some("Unschedulable")
    })?;
    let said = found.message.as_deref().unwrap_or("no node fits");
    // The claim tells more of its volume than the scheduler does.
    if waits_for_volume(said) {
        return None;
    }
    Some(Cause::passing(&reason::POD_UNSCHEDULABLE, format!("pod {name}: {said}")))
}

/// Whether no node can be chosen because a volume is missing that no node has to be chosen for.
fn waits_for_volume(said: &str) -> bool {
    said.contains("unbound immediate PersistentVolumeClaims")
}

fn of_container(pod: &str, container: &ContainerStatus) -> Option<Cause> {
    let at = format!("pod {pod}, container {}", container.name);
    let Some(waiting) = container.state.as_ref().and_then(|s| s.waiting.as_ref()) else {
        return (!container.ready).then(|| crashing(&at, container)).flatten();
    };
    let said = waiting.message.as_deref().unwrap_or_default();
    match waiting.reason.as_deref()? {
        "ErrImagePull"
        | "ImagePullBackOff"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "ErrInspectImage"
        | "RegistryUnavailable" => Some(Cause::passing(
            &reason::IMAGE_PULL_FAILED,
            format!("{at}: image {:?} cannot be pulled ({said})", container.image),
        )),
        "CrashLoopBackOff" => crashing(&at, container),
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
            Some(Cause::passing(&reason::CONTAINER_CONFIG_ERROR, format!("{at}: {said}")))
        }
        _ => None,
    }
}

/// A container that ended with an error and is started again.
fn crashing(at: &str, container: &ContainerStatus) -> Option<Cause> {
    let ended = ended(container)?;
    let words = shortened(ended.message.as_deref().unwrap_or_default());
    let code = ended.exit_code;
    // `Error` says no more than the code does; `OOMKilled` and others do.
    let message = match ended.reason.as_deref().filter(|reason| *reason != "Error") {
        Some(reason) => format!("{at} ended with code {code} ({reason}): {words}"),
        None => format!("{at} ended with code {code}: {words}"),
    };
    Some(Cause::passing(&reason::CONTAINER_CRASHING, message))
}

/// What the container said when it last ended.
pub(crate) fn last_words(container: &ContainerStatus) -> Option<String> {
    ended(container)?.message
}

/// The last end with an error.
fn ended(container: &ContainerStatus) -> Option<ContainerStateTerminated> {
    let states = [&container.state, &container.last_state];
    states
        .into_iter()
        .filter_map(|state| state.as_ref()?.terminated.clone())
        .find(|terminated| terminated.exit_code != 0)
}

/// What tells most of a long text, in whole lines and in their order: those that say what was fatal,
/// and as many of those that led to the last of them as there is room for; without a fatal one the
/// last lines. A single line that is too long is cut between words.
fn shortened(words: &str) -> String {
    let trimmed = words.trim();
    if trimmed.chars().count() <= WORDS_LIMIT {
        return trimmed.to_owned();
    }
    let mut lines: Vec<&str> = trimmed.lines().filter(|l| !l.trim().is_empty()).collect();
    // The kubelet keeps the end of a log, so that its first line has mostly lost its beginning.
    if words.len() >= KEPT_BYTES && lines.len() > 1 {
        lines.remove(0);
    }
    let fatal: Vec<usize> = (0..lines.len()).filter(|at| is_fatal(lines[*at])).collect();
    let last = fatal.last().copied().unwrap_or(lines.len().saturating_sub(1));
    let mut kept = BTreeSet::new();
    let mut room = WORDS_LIMIT;
    for sought in [fatal, (0..=last).collect()] {
        for at in sought.into_iter().rev().filter(|at| !kept.contains(at)).collect::<Vec<_>>() {
            let length = lines[at].chars().count() + 1;
            if length > room {
                break;
            }
            room -= length;
            kept.insert(at);
        }
    }
    match lines.get(last) {
        Some(line) if kept.is_empty() => cut_between_words(line),
        _ => kept.into_iter().map(|at| lines[at]).collect::<Vec<_>>().join("\n"),
    }
}

fn is_fatal(line: &str) -> bool {
    ["FATAL:", "PANIC:"].iter().any(|word| line.contains(word))
}

fn cut_between_words(line: &str) -> String {
    let end = line.char_indices().nth(WORDS_LIMIT).map_or(line.len(), |(at, _)| at);
    let end = line[..end].rfind(char::is_whitespace).unwrap_or(end);
    format!("{}…", line[..end].trim_end())
}

/// The cause that the newest warning tells, if what it tells of is not over.
pub fn of_events(
    events: &[SeenEvent],
    pod: Option<&Pod>,
    claim: Option<&PersistentVolumeClaim>,
) -> Option<Cause> {
    let warnings = events.iter().rev().filter(|e| e.kind == "Warning");
    warnings.filter(|e| is_present(e, pod, claim)).find_map(of_event)
}

/// Events outlive what they tell: a cause ends with its fact (fault catalogue PG-25).
fn is_present(event: &SeenEvent, pod: Option<&Pod>, claim: Option<&PersistentVolumeClaim>) -> bool {
    let status = pod.and_then(|p| p.status.as_ref());
    match event.reason.as_str() {
        "FailedCreate" => pod.is_none(),
        "FailedScheduling" => !status
            .and_then(|s| s.conditions.as_ref())
            .is_some_and(|all| all.iter().any(|c| c.type_ == "PodScheduled" && c.status == "True")),
        "ProvisioningFailed" | "FailedBinding" => claim
            .is_none_or(|c| c.status.as_ref().and_then(|s| s.phase.as_deref()) != Some("Bound")),
        _ => !status.is_some_and(|s| {
            let all = s.init_container_statuses.iter().chain(&s.container_statuses).flatten();
            all.into_iter().any(|c| c.state.as_ref().is_some_and(|s| s.waiting.is_none()))
        }),
    }
}

fn of_event(event: &SeenEvent) -> Option<Cause> {
    let message = format!("{}: {}", event.object, event.message);
    let quota = ["exceeded quota", "failed quota"].iter().any(|w| event.message.contains(w));
    let reason = match event.reason.as_str() {
        "FailedCreate" | "ProvisioningFailed" if quota => &reason::QUOTA_EXCEEDED,
        "FailedCreate" => &reason::ADMISSION_REFUSED,
        "ProvisioningFailed" | "FailedBinding" | "FailedMount" | "FailedAttachVolume" => {
            &reason::VOLUME_PENDING
        }
        "FailedScheduling" if !waits_for_volume(&event.message) => &reason::POD_UNSCHEDULABLE,
        _ => return None,
    };
    Some(Cause::passing(reason, message))
}

/// The cause when a container runs and does not become ready: its probe fails. The newest Event
/// about it has the probe's words; without one the pod's own condition must do.
pub fn of_probe(name: &str, pod: &Pod, events: &[SeenEvent], now: Timestamp) -> Option<Cause> {
    // A server that is being stopped is not ready, and that is no failure of a probe.
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let status = pod.status.as_ref()?;
    let hung = status.container_statuses.iter().flatten().find(|c| is_hung(c, now))?;
    let condition =
        status.conditions.iter().flatten().find(|c| {
            matches!(c.type_.as_str(), "ContainersReady" | "Ready") && c.status == "False"
        });
    let told = events.iter().rev().find(|e| e.reason == "Unhealthy").map(|e| e.message.as_str());
    let said = told
        .or_else(|| condition.and_then(|c| c.message.as_deref()))
        .unwrap_or("its readiness probe has not succeeded");
    let message =
        format!("pod {name}, container {}: the server runs and is not ready: {said}", hung.name);
    Some(Cause::passing(&reason::PROBE_FAILING, message))
}

fn is_hung(container: &ContainerStatus, now: Timestamp) -> bool {
    let running = container.state.as_ref().and_then(|s| s.running.as_ref());
    let since = running.and_then(|r| r.started_at.as_ref());
    !container.ready && since.is_some_and(|s| now.as_second() - s.0.as_second() >= HUNG_SECONDS)
}

/// The cause that a claim shows by itself.
pub fn of_claim(name: &str, claim: &PersistentVolumeClaim) -> Option<Cause> {
    let phase = claim.status.as_ref().and_then(|s| s.phase.as_deref());
    match phase {
        Some("Pending") => {
            let made_by = claim.metadata.annotations.as_ref().and_then(|a| a.get(PROVISIONER));
            let message = match made_by {
                Some(who) => format!("claim {name} has no volume yet; {who} is to make it"),
                None => format!("claim {name} has no volume yet"),
            };
            Some(Cause::passing(&reason::VOLUME_PENDING, message))
        }
        Some("Lost") => {
            Some(Cause::passing(&reason::VOLUME_PENDING, format!("claim {name} lost its volume")))
        }
        _ => None,
    }
}
