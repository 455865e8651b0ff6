//! From pods, claims and Events to causes, where a real cluster's words are what matters.

#![allow(clippy::unwrap_used, reason = "tests")]

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use operators::database::causes::{self, Cause};
use phased::fact::SeenEvent;
use serde_json::{Value, json};

fn pod(status: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "db-0"}, "status": status})).unwrap()
}

fn warning(reason: &str, message: &str) -> SeenEvent {
    SeenEvent {
        last_seen: "2026-01-01T00:00:00Z".parse().unwrap(),
        about: "uid".to_owned(),
        object: "StatefulSet/db".to_owned(),
        kind: "Warning".to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

fn told(cause: Option<Cause>) -> (&'static str, String) {
    let finding = cause.expect("a cause").finding;
    (finding.reason.name, finding.message)
}

#[test]
fn a_kill_for_memory_is_named_and_a_mere_error_is_not() {
    for (reason, shown) in [("OOMKilled", "code 137 (OOMKilled): LOG"), ("Error", "code 137: LOG")]
    {
        let status = json!({"containerStatuses": [{"name": "postgres", "image": "postgres:15",
            "imageID": "", "ready": false, "restartCount": 3,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated":
                {"exitCode": 137, "reason": reason, "message": "LOG: starting"}}}]});
        let (name, message) = told(causes::of_pod("db-0", &pod(status)));
        assert_eq!(name, "ContainerCrashing");
        assert!(message.contains(shown), "{message}");
    }
}

/// A quota that limits a resource refuses pods that say nothing about it; seen on a real API server.
#[test]
fn a_quota_that_wants_a_say_is_a_quota() {
    for words in
        ["exceeded quota: small, requested: pods=1", "failed quota: small: must specify cpu"]
    {
        let events = [warning("FailedCreate", &format!("create Pod db-0 failed: {words}"))];
        let (name, message) = told(causes::of_events(&events, None, None));
        assert_eq!(name, "QuotaExceeded");
        assert!(message.contains(words), "{message}");
    }
}

/// A server that is being stopped is not ready; its probe has not failed (a newcomer's find).
#[test]
fn a_pod_that_is_being_deleted_is_not_told_as_failing_its_probe() {
    let status = json!({"containerStatuses": [{"name": "postgres", "image": "postgres:15",
        "imageID": "", "ready": false, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]});
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let events = [warning("Unhealthy", "Startup probe failed: ")];
    let mut pod = pod(status);
    let (name, message) = told(causes::of_probe("db-0", &pod, &events, now));
    assert_eq!(name, "ProbeFailing");
    assert!(message.contains("Startup probe failed"), "{message}");
    pod.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T01:00:00Z")).unwrap());
    assert!(causes::of_probe("db-0", &pod, &events, now).is_none());
}

#[test]
fn a_volume_that_is_missing_is_told_by_its_claim_and_not_by_the_scheduler() {
    let said = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
    let status = json!({"conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": said}]});
    assert_eq!(causes::of_pod("db-0", &pod(status.clone())), None);
    let events = [warning("FailedScheduling", said)];
    assert_eq!(causes::of_events(&events, Some(&pod(status)), None), None);
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"annotations": {"volume.kubernetes.io/storage-provisioner": "example.com/idle"}},
        "status": {"phase": "Pending"},
    }))
    .unwrap();
    let (name, message) = told(causes::of_claim("data-db-0", &claim));
    assert_eq!(name, "VolumePending");
    assert!(message.ends_with("no volume yet; example.com/idle is to make it"), "{message}");
}
