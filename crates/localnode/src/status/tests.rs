//! The status of a pod along its life.

use super::*;
use crate::process::Exit;
use serde_json::json;

fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "db-0", "namespace": "ns", "uid": "u", "generation": 3},
        "spec": {"initContainers": [{"name": "i", "image": "postgres:17"}],
                 "containers": [{"name": "m", "image": "postgres:17"}]},
        "status": {"conditions": [{"type": "Other", "status": "True"}]}}))
    .expect("a pod")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a moment")
}

fn ending(code: i32) -> Ending {
    let reason = if code == 0 { "Completed" } else { "Error" };
    Ending {
        exit: Exit::with_code(code),
        reason,
        message: "why".into(),
        started: at(1),
        finished: at(2),
        run: 1,
    }
}

fn record(init: Situation, main: Situation) -> PodRecord {
    let mut containers =
        vec![ContainerRecord::new("i", Role::Init), ContainerRecord::new("m", Role::App)];
    containers[0].situation = init;
    containers[0].run = 1;
    containers[1].run = u32::from(!matches!(main, Situation::Waiting { .. }));
    containers[1].situation = main;
    PodRecord {
        containers,
        address: Some(Ipv4Addr::new(127, 77, 0, 4)),
        accepted: at(0),
        policy: RestartPolicy::Always,
    }
}

fn condition(status: &PodStatus, kind: &str) -> (String, Option<String>, Option<i64>) {
    let conditions = status.conditions.as_ref().expect("conditions");
    let found = conditions.iter().find(|c| c.type_ == kind).expect(kind);
    (
        found.status.clone(),
        found.message.clone(),
        found.last_transition_time.as_ref().map(|t| t.0.as_second()),
    )
}

#[test]
fn a_running_pod_is_ready_and_keeps_its_transition_times() {
    let up = Situation::Running { since: at(5), started: true, ready: true };
    let record = record(Situation::Ended(ending(0)), up);
    let mut pod = pod();
    let first = build(&pod, &record, at(10));
    assert_eq!(first.phase.as_deref(), Some("Running"));
    assert_eq!(condition(&first, "Ready"), ("True".into(), None, Some(10)));
    assert_eq!(condition(&first, "Other").0, "True", "a foreign condition stays");
    assert_eq!(first.pod_ip.as_deref(), Some("127.77.0.4"));
    assert_eq!(first.observed_generation, Some(3));
    pod.status = Some(first.clone());
    assert_eq!(build(&pod, &record, at(99)), first, "nothing moves because time passed");
}

#[test]
fn what_is_missing_is_named() {
    let waiting = Situation::Waiting { reason: "PodInitializing", message: String::new() };
    let up = Situation::Running { since: at(5), started: true, ready: true };
    let status = build(&pod(), &record(up, waiting), at(10));
    assert_eq!(status.phase.as_deref(), Some("Pending"));
    let (value, message, _) = condition(&status, "Initialized");
    assert_eq!(
        (value.as_str(), message.as_deref()),
        ("False", Some("containers with incomplete status: [i]"))
    );
    let (value, message, _) = condition(&status, "Ready");
    assert_eq!(
        (value.as_str(), message.as_deref()),
        ("False", Some("containers with unready status: [m]"))
    );
}

#[test]
fn a_crash_shows_its_message_in_the_last_state() {
    let mut record = record(
        Situation::Ended(ending(0)),
        Situation::Waiting { reason: "CrashLoopBackOff", message: "back-off".into() },
    );
    record.containers[1].last = Some(ending(3));
    record.containers[1].run = 1;
    let status = build(&pod(), &record, at(10));
    assert_eq!(status.phase.as_deref(), Some("Running"));
    let main = &status.container_statuses.as_ref().expect("one")[0];
    let waiting = main.state.as_ref().and_then(|s| s.waiting.as_ref()).expect("waiting");
    assert_eq!(waiting.reason.as_deref(), Some("CrashLoopBackOff"));
    let last = main.last_state.as_ref().and_then(|s| s.terminated.as_ref()).expect("terminated");
    assert_eq!((last.exit_code, last.message.as_deref()), (3, Some("why")));
}
