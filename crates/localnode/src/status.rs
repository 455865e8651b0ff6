//! The status of a pod as a kubelet reports it, from what the node knows. Pure: whether it is written is
//! decided by comparing it with what is there.

use crate::downward::NODE_ADDRESS;
use crate::image;
use crate::next::{self, Phase, RestartPolicy};
use crate::quality;
use crate::record::{ContainerRecord, Ending, Role, Situation};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::net::Ipv4Addr;

/// What the worker of a pod knows.
#[derive(Debug, Clone)]
pub(crate) struct PodRecord {
    /// Init containers first, in the template's order.
    pub(crate) containers: Vec<ContainerRecord>,
    /// The pod's address once its volumes are there.
    pub(crate) address: Option<Ipv4Addr>,
    /// When the node took the pod.
    pub(crate) accepted: Timestamp,
    /// How containers are restarted.
    pub(crate) policy: RestartPolicy,
}

/// The moment in whole seconds, as the API keeps it.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The status of a pod, on top of what others wrote into it.
pub(crate) fn build(pod: &Pod, record: &PodRecord, now: Timestamp) -> PodStatus {
    let before = pod.status.clone().unwrap_or_default();
    let phase = next::phase(record.policy, &record.containers);
    let (apps, inits): (Vec<_>, Vec<_>) =
        record.containers.iter().partition(|c| c.role == Role::App);
    let statuses = |records: &[&ContainerRecord]| {
        let made: Vec<_> = records.iter().map(|record| container_status(pod, record)).collect();
        (!made.is_empty()).then_some(made)
    };
    PodStatus {
        phase: Some(phase.word().to_owned()),
        conditions: Some(conditions(pod, record, phase, now)),
        container_statuses: statuses(&apps),
        init_container_statuses: statuses(&inits),
        host_ip: Some(NODE_ADDRESS.to_string()),
        host_ips: Some(vec![HostIP { ip: NODE_ADDRESS.to_string() }]),
        pod_ip: record.address.map(|address| address.to_string()),
        pod_ips: record.address.map(|address| vec![PodIP { ip: address.to_string() }]),
        start_time: Some(before.start_time.unwrap_or(Time(record.accepted))),
        qos_class: Some(quality::class(pod).to_owned()),
        observed_generation: pod.metadata.generation.or(before.observed_generation),
        ..before
    }
}

struct Claim {
    kind: &'static str,
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

fn conditions(pod: &Pod, record: &PodRecord, phase: Phase, now: Timestamp) -> Vec<PodCondition> {
    let before =
        pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let claims = claims(pod, record, phase, &before);
    let mut result: Vec<PodCondition> =
        claims.into_iter().map(|claim| settle(claim, pod, &before, now)).collect();
    let foreign = before.into_iter().filter(|old| !result.iter().any(|own| own.type_ == old.type_));
    let foreign: Vec<_> = foreign.collect();
    result.extend(foreign);
    result
}

fn claims(pod: &Pod, record: &PodRecord, phase: Phase, before: &[PodCondition]) -> Vec<Claim> {
    let (apps, inits): (Vec<_>, Vec<_>) =
        record.containers.iter().partition(|c| c.role == Role::App);
    let begun = apps.iter().any(|c| c.run > 0);
    let open: Vec<&str> = inits
        .iter()
        .filter(|c| !begun && !next::init_is_done(c))
        .map(|c| c.name.as_str())
        .collect();
    let unready: Vec<&str> = record
        .containers
        .iter()
        .filter(|c| c.role != Role::Init && !c.is_ready())
        .map(|c| c.name.as_str())
        .collect();
    let plain = |kind, holds| Claim { kind, holds, reason: None, message: None };
    let lacking = |kind, reason, what: &str, names: &[&str]| Claim {
        kind,
        holds: names.is_empty(),
        reason: (!names.is_empty()).then_some(reason),
        message: (!names.is_empty())
            .then(|| format!("containers with {what} status: [{}]", names.join(" "))),
    };
    let readiness = |kind| match phase {
        Phase::Succeeded => {
            Claim { kind, holds: false, reason: Some("PodCompleted"), message: None }
        }
        Phase::Failed if unready.is_empty() => {
            Claim { kind, holds: false, reason: Some("PodFailed"), message: None }
        }
        _ => lacking(kind, "ContainersNotReady", "unready", &unready),
    };
    let mut ready = readiness("Ready");
    let gates: Vec<&str> = open_gates(pod, before);
    if ready.holds && !gates.is_empty() {
        ready.holds = false;
        ready.reason = Some("ReadinessGatesNotReady");
        ready.message =
            Some(format!("the following readiness gates are not True: [{}]", gates.join(" ")));
    }
    vec![
        plain("PodReadyToStartContainers", record.address.is_some() && !phase.is_final()),
        lacking("Initialized", "ContainersNotInitialized", "incomplete", &open),
        ready,
        readiness("ContainersReady"),
        plain("PodScheduled", true),
    ]
}

fn open_gates<'a>(pod: &'a Pod, before: &[PodCondition]) -> Vec<&'a str> {
    let gates = pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    gates
        .map(|gate| gate.condition_type.as_str())
        .filter(|gate| !before.iter().any(|c| c.type_ == *gate && c.status == "True"))
        .collect()
}

/// A condition with its transition time, which moves only when its status does.
fn settle(claim: Claim, pod: &Pod, before: &[PodCondition], now: Timestamp) -> PodCondition {
    let status = if claim.holds { "True" } else { "False" };
    let old = before.iter().find(|old| old.type_ == claim.kind);
    let since =
        old.filter(|old| old.status == status).and_then(|old| old.last_transition_time.clone());
    PodCondition {
        type_: claim.kind.to_owned(),
        status: status.to_owned(),
        reason: claim.reason.map(str::to_owned),
        message: claim.message,
        last_transition_time: Some(since.unwrap_or(Time(now))),
        last_probe_time: None,
        observed_generation: old
            .and_then(|old| old.observed_generation)
            .and(pod.metadata.generation),
    }
}

fn container_status(pod: &Pod, record: &ContainerRecord) -> ContainerStatus {
    let image = template(pod, &record.name).and_then(|c| c.image.clone()).unwrap_or_default();
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let id = |run: u32| format!("localnode://{uid}/{}/{run}", record.name);
    let has_run = record.run > 0;
    let started = match &record.situation {
        Situation::Running { started, .. } => *started,
        Situation::Waiting { .. } | Situation::Ended(_) => false,
    };
    ContainerStatus {
        name: record.name.clone(),
        image_id: if has_run { image::full_name(&image) } else { String::new() },
        image,
        container_id: has_run.then(|| id(record.run)),
        ready: record.is_ready(),
        started: Some(started),
        restart_count: record.restarts,
        state: Some(state(&record.situation, &id)),
        last_state: Some(
            record.last.as_ref().map_or_else(ContainerState::default, |ending| ended(ending, &id)),
        ),
        ..ContainerStatus::default()
    }
}

fn state(situation: &Situation, id: &dyn Fn(u32) -> String) -> ContainerState {
    match situation {
        Situation::Waiting { reason, message } => ContainerState {
            waiting: Some(ContainerStateWaiting {
                reason: Some((*reason).to_owned()),
                message: (!message.is_empty()).then(|| message.clone()),
            }),
            ..ContainerState::default()
        },
        Situation::Running { since, .. } => ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(Time(*since)) }),
            ..ContainerState::default()
        },
        Situation::Ended(ending) => ended(ending, id),
    }
}

fn ended(ending: &Ending, id: &dyn Fn(u32) -> String) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: ending.exit.code,
            reason: Some(ending.reason.to_owned()),
            message: (!ending.message.is_empty()).then(|| ending.message.clone()),
            started_at: Some(Time(ending.started)),
            finished_at: Some(Time(ending.finished)),
            container_id: Some(id(ending.run)),
            signal: None,
        }),
        ..ContainerState::default()
    }
}

/// A container's template by name.
pub(crate) fn template<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    spec.init_containers
        .iter()
        .flatten()
        .chain(&spec.containers)
        .find(|container| container.name == name)
}

#[cfg(test)]
mod tests;
