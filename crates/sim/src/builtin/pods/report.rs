//! A pod's status as the kubelet reports it: phase, conditions and container states.
//!
//! Must not move anything; it describes what `container` holds.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::container::{Container, Ended, State};
use super::run::Run;
use crate::builtin::field;

/// The whole status of a pod, keeping conditions that others own.
pub(super) fn status(pod: &Value, run: &Run, now: Timestamp) -> Value {
    let mut status = field::map(pod, "/status");
    let phase = phase(pod, run);
    status.insert("phase".into(), json!(phase));
    status.insert("startTime".into(), json!(field::stamp(run.seen)));
    status.insert("hostIP".into(), json!(run.host));
    status.insert("hostIPs".into(), json!([{ "ip": run.host }]));
    if let Some(address) = &run.address {
        status.insert("podIP".into(), json!(address));
        status.insert("podIPs".into(), json!([{ "ip": address }]));
    }
    let initialized = run.initialized();
    let waiting = if initialized { "ContainerCreating" } else { "PodInitializing" };
    let main: Vec<Value> =
        run.main.iter().map(|one| container(pod, one, "containerStatuses", waiting)).collect();
    status.insert("containerStatuses".into(), json!(main));
    if !run.init.is_empty() {
        let states = run.init.iter();
        let states: Vec<Value> = states
            .map(|one| container(pod, one, "initContainerStatuses", "PodInitializing"))
            .collect();
        status.insert("initContainerStatuses".into(), json!(states));
    }
    if let Some(generation) = pod.pointer("/metadata/generation") {
        status.insert("observedGeneration".into(), generation.clone());
    }
    status.insert("conditions".into(), json!(conditions(pod, run, phase, now)));
    Value::Object(status)
}

fn phase(pod: &Value, run: &Run) -> &'static str {
    let never = field::text(pod, "/spec/restartPolicy") == "Never";
    let failed = |one: &Container| {
        matches!(one.state, State::Done)
            && one.last.as_ref().is_some_and(|ended| ended.exit.code != 0)
    };
    if !run.initialized() {
        let dead = run.init.iter().any(|one| failed(one) && never);
        return if dead { "Failed" } else { "Pending" };
    }
    let unborn = |one: &Container| one.last.is_none() && !one.running();
    if run.main.iter().any(unborn) {
        return "Pending";
    }
    if run.main.iter().all(|one| matches!(one.state, State::Done)) {
        return if run.main.iter().any(failed) { "Failed" } else { "Succeeded" };
    }
    "Running"
}

fn container(pod: &Value, one: &Container, list: &str, waiting: &str) -> Value {
    let mut status = Map::new();
    let image = field::text(&one.spec, "/image");
    status.insert("name".into(), json!(one.name()));
    status.insert("image".into(), json!(image));
    status.insert("restartCount".into(), json!(one.restarts));
    let started = one.running();
    let done = one.init && !one.sidecar() && one.initialized();
    status.insert("ready".into(), json!(one.ready || done));
    status.insert("started".into(), json!(started));
    let born = !one.id.is_empty();
    status.insert(
        "imageID".into(),
        json!(if born { format!("model/{image}") } else { String::new() }),
    );
    if born {
        status.insert("containerID".into(), json!(one.id));
    }
    let current = matches!(one.state, State::Done | State::Died { .. });
    let last = match (&one.last, current) {
        (Some(ended), false) => json!({ "terminated": terminated(one, ended) }),
        _ => json!({}),
    };
    status.insert("lastState".into(), last);
    status.insert("state".into(), state(pod, one, waiting));
    // Kept in the order of the spec; the list's name only documents which list it goes to.
    let _ = list;
    Value::Object(status)
}

fn state(pod: &Value, one: &Container, waiting: &str) -> Value {
    let wait = |reason: &str, message: String| match message.is_empty() {
        true => json!({ "waiting": { "reason": reason } }),
        false => json!({ "waiting": { "reason": reason, "message": message } }),
    };
    let image = field::text(&one.spec, "/image");
    match &one.state {
        State::Waiting => wait(waiting, String::new()),
        State::Pulling { .. } | State::Starting { .. } => match one.init {
            true => wait("PodInitializing", String::new()),
            false => wait("ContainerCreating", String::new()),
        },
        State::PullFailed { error, backing_off: false, .. } => wait("ErrImagePull", error.clone()),
        State::PullFailed { error, .. } => wait(
            "ImagePullBackOff",
            format!("Back-off pulling image \"{image}\": ErrImagePull: {error}"),
        ),
        State::Unconfigured { message, .. } => wait("CreateContainerConfigError", message.clone()),
        State::Running { since, .. } => json!({ "running": { "startedAt": field::stamp(*since) } }),
        State::BackOff { seconds, .. } => wait(
            "CrashLoopBackOff",
            format!(
                "back-off {} restarting failed container={} pod={}_{}({})",
                spelt(*seconds),
                one.name(),
                field::name(pod),
                field::namespace(pod),
                field::uid(pod)
            ),
        ),
        State::Died { .. } | State::Done => match &one.last {
            Some(ended) => json!({ "terminated": terminated(one, ended) }),
            None => wait(waiting, String::new()),
        },
    }
}

/// Seconds as Go prints a duration: `10s`, `2m40s`, `5m0s`.
fn spelt(seconds: i64) -> String {
    match seconds / 60 {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m{}s", seconds % 60),
    }
}

fn terminated(one: &Container, ended: &Ended) -> Value {
    let reason = match ended.exit.code {
        0 => "Completed",
        137 => "OOMKilled",
        _ => "Error",
    };
    let mut terminated = json!({
        "exitCode": ended.exit.code,
        "reason": reason,
        "startedAt": field::stamp(ended.started),
        "finishedAt": field::stamp(ended.finished),
        "containerID": ended.id,
    });
    // Programs of the model print; they do not write to the termination log.
    let shown = field::text(&one.spec, "/terminationMessagePolicy") == "FallbackToLogsOnError";
    if shown && ended.exit.code != 0 && !ended.exit.message.is_empty() {
        terminated["message"] = json!(tail(&ended.exit.message));
    }
    terminated
}

/// The last 2048 bytes, cut at a character.
fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(2048);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

fn conditions(pod: &Value, run: &Run, phase: &str, now: Timestamp) -> Vec<Value> {
    let mut conditions = field::list(pod, "/status/conditions").to_vec();
    let unfinished: Vec<&str> = run.incomplete();
    let unready: Vec<&str> =
        run.main.iter().filter(|one| !one.ready).map(Container::name).collect();
    let ended = matches!(phase, "Succeeded" | "Failed");
    let initialized = match unfinished.is_empty() {
        true => (true, "", String::new()),
        false => (
            false,
            "ContainersNotInitialized",
            format!("containers with incomplete status: [{}]", unfinished.join(" ")),
        ),
    };
    let ready = match (ended, unready.is_empty()) {
        (true, _) if phase == "Succeeded" => (false, "PodCompleted", String::new()),
        (true, _) => (false, "PodFailed", String::new()),
        (false, true) => (true, "", String::new()),
        (false, false) => (
            false,
            "ContainersNotReady",
            format!("containers with unready status: [{}]", unready.join(" ")),
        ),
    };
    let sandbox = (run.address.is_some() && !ended, "", String::new());
    let gates = field::list(pod, "/spec/readinessGates").iter();
    let gates_open =
        gates.clone().all(|gate| field::is_true(pod, field::text(gate, "/conditionType")));
    let pod_ready = match (ready.0, gates_open) {
        (true, false) => (false, "ReadinessGatesNotReady", String::new()),
        _ => ready.clone(),
    };
    let wanted = [
        ("PodReadyToStartContainers", sandbox),
        ("Initialized", initialized),
        ("Ready", pod_ready),
        ("ContainersReady", ready),
        ("PodScheduled", (true, "", String::new())),
    ];
    for (kind, (holds, reason, message)) in wanted {
        set(&mut conditions, pod, kind, holds, reason, &message, now);
    }
    conditions
}

#[allow(clippy::too_many_arguments, reason = "one condition is seven facts")]
fn set(
    conditions: &mut Vec<Value>,
    pod: &Value,
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let status = if holds { "True" } else { "False" };
    let before = conditions.iter().position(|one| one["type"] == kind);
    let since = before
        .map(|index| &conditions[index])
        .filter(|one| one["status"] == status)
        .map_or_else(|| json!(field::stamp(now)), |one| one["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": kind,
        "status": status,
        "lastProbeTime": null,
        "lastTransitionTime": since,
    });
    if let Some(generation) = pod.pointer("/metadata/generation") {
        condition["observedGeneration"] = generation.clone();
    }
    if !reason.is_empty() {
        condition["reason"] = json!(reason);
    }
    if !message.is_empty() {
        condition["message"] = json!(message);
    }
    match before {
        Some(index) => conditions[index] = condition,
        None => conditions.push(condition),
    }
}
