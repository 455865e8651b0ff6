//! The status that a kubelet would report for a pod with a given fate. Pure: the time is an argument.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, Pod, PodCondition, PodIP, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Outcome;

/// The status a pod should have. Equal to the present one if nothing is to be written.
pub(crate) fn desired(pod: &Pod, outcome: &Outcome, address: IpAddr, now: &Time) -> PodStatus {
    let old = pod.status.clone().unwrap_or_default();
    let Some(spec) = &pod.spec else { return old };
    let fate = Fate::of(outcome);
    let generation = pod.metadata.generation;
    let mut status = old.clone();
    status.phase = Some(fate.phase.to_owned());
    status.observed_generation = generation;
    status.host_ip = Some("192.0.2.1".to_owned());
    status.start_time = status.start_time.or_else(|| Some(now.clone()));
    // An ended pod keeps the address it had; a new one gets one with its sandbox, images or not.
    if status.pod_ip.is_none() {
        status.pod_ip = Some(address.to_string());
        status.pod_ips = Some(vec![PodIP { ip: address.to_string() }]);
    }
    status.init_container_statuses =
        Some(initial_containers(spec, &old, now)).filter(|list| !list.is_empty());
    status.container_statuses = Some(main_containers(spec, &old, outcome, now));
    let unready = (!fate.ready).then_some(fate.unready_reason);
    for (kind, reason) in [
        ("PodScheduled", None),
        ("PodReadyToStartContainers", None),
        ("Initialized", None),
        ("ContainersReady", unready),
        ("Ready", unready),
    ] {
        set_condition(&mut status, kind, reason.map(|reason| (reason, "")), (generation, now));
    }
    status
}

/// The status of a pod that finds no node.
pub(crate) fn unschedulable(pod: &Pod, message: &str, now: &Time) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    let why = Some(("Unschedulable", message));
    set_condition(&mut status, "PodScheduled", why, (pod.metadata.generation, now));
    status
}

/// What an outcome means for the pod as a whole.
struct Fate {
    phase: &'static str,
    ready: bool,
    unready_reason: &'static str,
}

impl Fate {
    fn of(outcome: &Outcome) -> Self {
        let (phase, ready, unready_reason) = match outcome {
            Outcome::Ready => ("Running", true, ""),
            Outcome::NotReady | Outcome::CrashLoopBackOff { .. } => {
                ("Running", false, "ContainersNotReady")
            }
            Outcome::Completed => ("Succeeded", false, "PodCompleted"),
            Outcome::Failed { .. } => ("Failed", false, "PodFailed"),
            Outcome::Starting
            | Outcome::ImagePullBackOff { .. }
            | Outcome::Unschedulable { .. }
            | Outcome::Untouched => ("Pending", false, "ContainersNotReady"),
        };
        Self { phase, ready, unready_reason }
    }
}

fn main_containers(
    spec: &PodSpec,
    old: &PodStatus,
    outcome: &Outcome,
    now: &Time,
) -> Vec<ContainerStatus> {
    let before = old.container_statuses.as_deref().unwrap_or_default();
    spec.containers
        .iter()
        .map(|container| container_status(container, before, outcome, now))
        .collect()
}

/// Init containers have done their work; those that stay (sidecars) run.
fn initial_containers(spec: &PodSpec, old: &PodStatus, now: &Time) -> Vec<ContainerStatus> {
    let before = old.init_container_statuses.as_deref().unwrap_or_default();
    let outcome = |container: &Container| match container.restart_policy.as_deref() {
        Some("Always") => Outcome::Ready,
        _ => Outcome::Completed,
    };
    let initial = spec.init_containers.iter().flatten();
    initial.map(|container| container_status(container, before, &outcome(container), now)).collect()
}

fn container_status(
    container: &Container,
    before: &[ContainerStatus],
    outcome: &Outcome,
    now: &Time,
) -> ContainerStatus {
    let image = container.image.clone().unwrap_or_default();
    let mut status =
        before.iter().find(|status| status.name == container.name).cloned().unwrap_or_default();
    status.name.clone_from(&container.name);
    // `imageID` stays empty until there is something to run.
    let pulled = !matches!(outcome, Outcome::Starting | Outcome::ImagePullBackOff { .. });
    status.image_id = if pulled { format!("stand-in://{image}") } else { String::new() };
    status.image = image;
    // An ended init container counts as ready.
    status.ready = matches!(outcome, Outcome::Ready | Outcome::Completed);
    status.started = Some(matches!(outcome, Outcome::Ready | Outcome::NotReady));
    let wanted = state(outcome, now);
    let present = status.state.take().unwrap_or_default();
    if same_state(&present, &wanted) {
        // The same state began when it began, not now.
        status.state = Some(present);
        return status;
    }
    if let Outcome::CrashLoopBackOff { exit_code, message } = outcome {
        status.restart_count += 1;
        let ended = ended(*exit_code, message, now);
        status.last_state =
            Some(ContainerState { terminated: Some(ended), ..ContainerState::default() });
    }
    status.state = Some(wanted);
    status
}

fn state(outcome: &Outcome, now: &Time) -> ContainerState {
    let mut state = ContainerState::default();
    match outcome {
        Outcome::Ready | Outcome::NotReady => {
            state.running = Some(ContainerStateRunning { started_at: Some(now.clone()) });
        }
        Outcome::Completed => state.terminated = Some(ended(0, "", now)),
        Outcome::Failed { exit_code, message } => {
            state.terminated = Some(ended(*exit_code, message, now))
        }
        Outcome::ImagePullBackOff { message } => {
            state.waiting = Some(waiting("ImagePullBackOff", message))
        }
        Outcome::CrashLoopBackOff { .. } => {
            state.waiting =
                Some(waiting("CrashLoopBackOff", "back-off restarting failed container"));
        }
        Outcome::Starting | Outcome::Unschedulable { .. } | Outcome::Untouched => {
            state.waiting = Some(waiting("ContainerCreating", ""));
        }
    }
    state
}

fn waiting(reason: &str, message: &str) -> ContainerStateWaiting {
    ContainerStateWaiting {
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()).filter(|message| !message.is_empty()),
    }
}

fn ended(exit_code: i32, message: &str, now: &Time) -> ContainerStateTerminated {
    ContainerStateTerminated {
        exit_code,
        reason: Some(if exit_code == 0 { "Completed" } else { "Error" }.to_owned()),
        message: Some(message.to_owned()).filter(|message| !message.is_empty()),
        started_at: Some(now.clone()),
        finished_at: Some(now.clone()),
        ..ContainerStateTerminated::default()
    }
}

/// Whether two states differ in nothing but their times.
fn same_state(one: &ContainerState, other: &ContainerState) -> bool {
    let end = |state: &ContainerState| {
        state.terminated.clone().map(|end| (end.exit_code, end.reason, end.message))
    };
    one.waiting == other.waiting
        && one.running.is_some() == other.running.is_some()
        && end(one) == end(other)
}

/// Sets a condition true, or false for a reason; its transition time moves only when its status does.
fn set_condition(
    status: &mut PodStatus,
    kind: &str,
    failing: Option<(&str, &str)>,
    (generation, now): (Option<i64>, &Time),
) {
    let conditions = status.conditions.get_or_insert_default();
    let position =
        conditions.iter().position(|condition| condition.type_ == kind).unwrap_or_else(|| {
            conditions.push(PodCondition { type_: kind.to_owned(), ..PodCondition::default() });
            conditions.len() - 1
        });
    let condition = &mut conditions[position];
    let wanted = if failing.is_none() { "True" } else { "False" };
    if condition.status != wanted {
        condition.status = wanted.to_owned();
        condition.last_transition_time = Some(now.clone());
    }
    condition.observed_generation = generation;
    condition.reason = failing.map(|(reason, _)| reason.to_owned());
    condition.message =
        failing.map(|(_, message)| message.to_owned()).filter(|message| !message.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;
    use serde_json::json;
    use std::net::Ipv4Addr;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).expect("a time"))
    }

    fn step(pod: &mut Pod, outcome: &Outcome, second: i64) -> bool {
        let status = desired(pod, outcome, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), &at(second));
        let changed = pod.status.as_ref() != Some(&status);
        pod.status = Some(status);
        changed
    }

    #[test]
    fn a_status_settles_and_its_times_move_only_with_it() {
        let mut pod: Pod = serde_json::from_value(json!({"spec": {
            "initContainers": [{"name": "prepare"}], "containers": [{"name": "main", "image": "zoo:1"}]}}))
        .expect("a pod");
        let crash = Outcome::CrashLoopBackOff { exit_code: 3, message: "disk full".to_owned() };
        assert!(step(&mut pod, &Outcome::Ready, 10));
        assert!(!step(&mut pod, &Outcome::Ready, 20), "a settled status must cost no write");
        assert!(step(&mut pod, &crash, 30));
        assert!(!step(&mut pod, &crash, 40));

        let status = pod.status.expect("a status");
        let ready = status
            .conditions
            .iter()
            .flatten()
            .find(|condition| condition.type_ == "Ready")
            .expect("Ready");
        assert_eq!((ready.status.as_str(), &ready.last_transition_time), ("False", &Some(at(30))));
        let scheduled = &status.conditions.as_ref().expect("conditions")[0];
        assert_eq!(
            (scheduled.status.as_str(), &scheduled.last_transition_time),
            ("True", &Some(at(10)))
        );
        let main = &status.container_statuses.expect("containers")[0];
        assert_eq!(main.restart_count, 1);
        let last = main.last_state.clone().and_then(|state| state.terminated).expect("a last run");
        assert_eq!((last.exit_code, last.message.as_deref()), (3, Some("disk full")));
    }
}
