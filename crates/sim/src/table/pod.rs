//! Pods: the status column is derived from the containers, as the real server does.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Printer, age, age_of, each, name, number, text, text_or};

pub(super) const PODS: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Status", "string", 0),
        ("Restarts", "string", 0),
        ("Age", "string", 0),
        ("IP", "string", 1),
        ("Node", "string", 1),
        ("Nominated Node", "string", 1),
        ("Readiness Gates", "string", 1),
    ],
    cells,
};

fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let statuses = "/status/containerStatuses";
    let ready = each(pod, statuses).filter(|status| status["ready"] == json!(true)).count();
    let total = each(pod, "/spec/containers").count();
    vec![
        name(pod),
        json!(format!("{ready}/{total}")),
        json!(status(pod)),
        json!(restarts(pod, now)),
        age_of(pod, now),
        json!(text_or(pod, "/status/podIP", "<none>")),
        json!(text_or(pod, "/spec/nodeName", "<none>")),
        json!(text_or(pod, "/status/nominatedNodeName", "<none>")),
        json!(gates(pod)),
    ]
}

fn restarts(pod: &Value, now: Timestamp) -> String {
    let statuses = match init_status(pod) {
        Some(_) => "/status/initContainerStatuses",
        None => "/status/containerStatuses",
    };
    let count: i64 = each(pod, statuses).map(|status| number(status, "/restartCount")).sum();
    let last = each(pod, statuses)
        .map(|status| text(status, "/lastState/terminated/finishedAt"))
        .filter(|at| !at.is_empty())
        .max();
    match last {
        Some(at) if count > 0 => format!("{count} ({} ago)", age::since(at, now)),
        _ => count.to_string(),
    }
}

fn gates(pod: &Value) -> String {
    let gates: Vec<&str> =
        each(pod, "/spec/readinessGates").map(|gate| text(gate, "/conditionType")).collect();
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let met = gates
        .iter()
        .filter(|gate| {
            each(pod, "/status/conditions").any(|condition| {
                text(condition, "/type") == **gate && text(condition, "/status") == "True"
            })
        })
        .count();
    format!("{met}/{}", gates.len())
}

fn status(pod: &Value) -> String {
    let mut reason = text_or(pod, "/status/phase", "Unknown").to_owned();
    if !text(pod, "/status/reason").is_empty() {
        reason = text(pod, "/status/reason").to_owned();
    }
    if let Some(initialising) = init_status(pod) {
        reason = initialising;
    } else {
        let mut running = false;
        for status in each(pod, "/status/containerStatuses").collect::<Vec<_>>().into_iter().rev() {
            if let Some(state) = stopped(status) {
                reason = state;
            } else if status["ready"] == json!(true) && status["state"]["running"].is_object() {
                running = true;
            }
        }
        if reason == "Completed" && running {
            reason = "Running".to_owned();
        }
    }
    if text(pod, "/metadata/deletionTimestamp").is_empty() {
        return reason;
    }
    match text(pod, "/status/reason") {
        "NodeLost" => "Unknown".to_owned(),
        _ if matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") => reason,
        _ => "Terminating".to_owned(),
    }
}

/// Why a container does not run; none if it does or nothing is known.
fn stopped(status: &Value) -> Option<String> {
    let waiting = text(status, "/state/waiting/reason");
    if !waiting.is_empty() {
        return Some(waiting.to_owned());
    }
    let terminated = status.pointer("/state/terminated")?;
    Some(match (text(terminated, "/reason"), number(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    })
}

fn init_status(pod: &Value) -> Option<String> {
    let total = each(pod, "/spec/initContainers").count();
    let statuses = each(pod, "/status/initContainerStatuses");
    for (at, status) in statuses.enumerate() {
        let done = number(status, "/state/terminated/exitCode") == 0
            && status.pointer("/state/terminated").is_some();
        let sidecar = status["started"] == json!(true) && status["state"]["running"].is_object();
        if done || sidecar {
            continue;
        }
        return Some(match stopped(status) {
            Some(reason) if reason != "PodInitializing" => format!("Init:{reason}"),
            _ => format!("Init:{at}/{total}"),
        });
    }
    None
}
