//! What fails while a Database is running or coming up, how it is told, and how it heals.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::World;
use phased::Trouble;
use phased::fact::{Fate, SeenEvent};
use serde_json::{Value, json};

fn trouble(fate: Fate, reason: &str, message: &str) -> Trouble {
    Trouble { fate, reason: reason.to_owned(), message: message.to_owned() }
}

/// Causes that pods, claims and Events show are in the conditions in the very next pass, while the
/// phase is still Deploying, and end with their fact.
#[test]
fn pg_25_causes_are_told_at_once() {
    let waiting = |reason: &str, message: &str| {
        json!({"containerStatuses": [{"name": "postgres", "image": "postgres:nope",
            "imageID": "", "ready": false, "restartCount": 3,
            "state": {"waiting": {"reason": reason, "message": message}},
            "lastState": {"terminated": {"exitCode": 1, "message": "FATAL: unrecognized parameter"}}}]})
    };
    let table = [
        (waiting("ImagePullBackOff", "not found"), "ImagePullFailed", "postgres:nope"),
        (waiting("ErrImagePull", "not found"), "ImagePullFailed", "postgres:nope"),
        (waiting("CrashLoopBackOff", ""), "ContainerCrashing", "unrecognized parameter"),
        (waiting("CreateContainerConfigError", "no key"), "ContainerConfigError", "no key"),
        (
            json!({"conditions": [{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "message": "0/3 nodes"}]}),
            "PodUnschedulable",
            "0/3 nodes",
        ),
    ];
    for (status, reason, words) in table {
        let mut world = World::new();
        while !world.objects.contains_key(&world.names().client_service()) {
            world.pass();
        }
        world.stall(status);
        for _ in 0..4 {
            world.pass();
        }
        assert_eq!(world.story(), format!("Deploying/False/{reason}"));
        assert!(world.condition("Ready").2.contains(words), "{}", world.condition("Ready").2);
        world.bring_up();
        assert_eq!(world.condition("Degraded").0, "False");
    }
}

fn event(about: &str, reason: &str, message: &str) -> SeenEvent {
    SeenEvent {
        last_seen: "2026-01-01T00:00:00Z".parse().unwrap(),
        about: about.to_owned(),
        object: "StatefulSet/test-db".to_owned(),
        kind: "Warning".to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

#[test]
fn quota_and_admission_are_read_from_the_sets_events() {
    for (message, reason) in [
        ("create Pod test-db-0 failed: exceeded quota: tight", "QuotaExceeded"),
        ("create Pod test-db-0 failed: violates PodSecurity", "AdmissionRefused"),
    ] {
        let mut world = World::new();
        while !world.objects.contains_key(&world.names().client_service()) {
            world.pass();
        }
        let id = world.names().stateful_set();
        let uid = world.live(&id).unwrap().uid().to_owned();
        world.events.push(event(&uid, "FailedCreate", message));
        for _ in 0..4 {
            world.pass();
        }
        assert_eq!(world.story(), format!("Deploying/False/{reason}"));
        assert!(world.condition("Ready").2.contains(message));
        world.bring_up();
    }
}

#[test]
fn a_quota_that_refuses_a_child_is_told() {
    let mut world = World::new();
    let id = world.names().config_map();
    let refusal =
        trouble(Fate::UserMustAct, "Forbidden", "configmaps is forbidden: exceeded quota: q");
    world.refuses.insert(id.clone(), refusal);
    for _ in 0..5 {
        world.pass();
    }
    assert_eq!(world.story(), "Provisioning/False/QuotaExceeded");
    assert!(!world.objects.contains_key(&world.names().stateful_set()));
    world.refuses.clear();
    world.bring_up();
}

/// The rollout makes no progress: Failed with the causes, retried with growing delays, and a good
/// spec is taken up at once.
#[test]
fn a_stuck_rollout_fails_and_a_good_spec_heals_it() {
    let mut world = World::ready();
    world.edit(|root| root["spec"]["image"] = json!("postgres:14-nope"));
    world.pass();
    let broken = json!({"containerStatuses": [{"name": "postgres", "image": "postgres:14-nope",
        "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}}]});
    world.stall(broken.clone());
    world.settle();
    assert_eq!(world.story(), "Deploying/False/ImagePullFailed");
    assert_eq!(world.condition("Degraded").1, "PrimaryUnavailable");
    world.advance(601);
    world.settle();
    assert_eq!(world.story(), "Failed/False/ProgressDeadlineExceeded");
    assert!(world.condition("Ready").2.contains("ImagePullFailed"));
    let attempts = |world: &World| world.root["status"]["retry"]["attempts"].as_i64().unwrap();
    assert_eq!(attempts(&world), 1);
    let mut delays = Vec::new();
    for _ in 0..6 {
        let next: jiff::Timestamp =
            world.root["status"]["retry"]["nextTry"].as_str().unwrap().parse().unwrap();
        delays.push(next.as_second() - world.now.as_second());
        world.now = next;
        world.settle();
    }
    assert_eq!(delays, [60, 120, 240, 480, 600, 600]);
    assert_eq!(attempts(&world), 7);
    world.writes.clear();
    world.edit(|root| root["spec"]["image"] = json!("postgres:14.13"));
    world.pass();
    assert_eq!(world.phase(), "Deploying", "an edit starts at once");
    // The pod of the broken revision blocks the set; it is named and deleted once.
    let id = world.names().stateful_set();
    world.set_status(&id, "newer", false);
    let plan = world.pass();
    assert!(plan.notes.iter().any(|n| n.reason.name == "BlockingPodReplaced"));
    assert!(!world.objects.contains_key(&world.names().primary_pod()));
    let deletes = world.writes.iter().filter(|w| w.starts_with("delete Pod")).count();
    assert_eq!(deletes, 1);
    world.settle_rolling();
    assert_eq!(world.phase(), "Ready");
    assert!(world.root["status"].get("retry").is_none());
}

fn guard_says(message: &str) -> Value {
    json!({"initContainerStatuses": [{"name": "guard", "image": "postgres:14", "imageID": "",
        "ready": false, "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "message": message}}}]})
}

/// An empty volume after data existed is never initialised; restoring it or giving the data up
/// heals.
#[test]
fn an_empty_volume_after_data_is_refused() {
    let mut world = World::ready();
    let names = world.names();
    assert_eq!(world.objects[&names.config_map()]["data"]["bootstrap"], "refused");
    world.objects.remove(&names.data_claim());
    world.objects.remove(&names.primary_pod());
    world.stall(guard_says("DataMissing: the data folder is empty although data were recorded\n"));
    world.settle();
    assert_eq!(world.story(), "Failed/False/DataMissing");
    assert_eq!(world.condition("Degraded").1, "DataMissing");
    assert!(world.condition("Ready").2.contains("accept-data-loss"));
    assert_eq!(world.root["status"]["systemIdentifier"], "7000000000000000001");

    world.edit(|root| {
        root["metadata"]["annotations"] =
            json!({"steadfast.dev/accept-data-loss": "7000000000000000001"});
    });
    world.settle();
    assert_eq!(world.objects[&names.config_map()]["data"]["bootstrap"], "allowed");
    world.server.identifier = "7000000000000000002".to_owned();
    world.settle_rolling();
    assert_eq!(world.phase(), "Ready");
    assert_eq!(world.root["status"]["systemIdentifier"], "7000000000000000002");
    assert_eq!(world.objects[&names.config_map()]["data"]["bootstrap"], "refused");
}

#[test]
fn other_refusals_of_the_guard_are_told() {
    for (message, reason) in [
        (
            "DataVersionMismatch: the data were made by PostgreSQL 16 and the image brings 17",
            "DataVersionMismatch",
        ),
        ("HalfInitialised: the data folder holds files but no PG_VERSION", "HalfInitialised"),
    ] {
        let mut world = World::ready();
        world.stall(guard_says(message));
        world.settle();
        assert_eq!(world.story(), format!("Failed/False/{reason}"));
        world.settle_rolling();
        assert_eq!(world.phase(), "Ready", "healed when the guard lets it pass");
    }
}

/// A lost status does not lose the record of data.
#[test]
fn the_record_of_data_outlives_the_status() {
    let mut world = World::ready();
    world.root.as_object_mut().unwrap().remove("status");
    world.pass();
    let data = &world.objects[&world.names().config_map()]["data"];
    assert_eq!(data["bootstrap"], "refused");
    assert_eq!(data["system-identifier"], "7000000000000000001");
}

#[test]
fn other_data_behind_the_service_are_not_taken() {
    let mut world = World::ready();
    world.server.identifier = "7999".to_owned();
    world.settle();
    assert_eq!(world.story(), "Failed/False/DifferentData");
    assert_eq!(world.root["status"]["systemIdentifier"], "7000000000000000001");
    world.server.identifier = "7000000000000000001".to_owned();
    world.settle();
    assert_eq!(world.phase(), "Ready");
}

#[test]
fn pg_24_evidence_of_another_server_does_not_count() {
    for identity in [Some("uid-of-somebody-else".to_owned()), None] {
        let mut world = World::ready();
        let before = world.server.identity.clone();
        world.server.identity = identity;
        world.settle();
        assert_eq!(world.story(), "Failed/False/WrongServer");
        world.server.identity = before;
        world.settle();
        assert_eq!(world.phase(), "Ready");
    }
}

/// What the server says to the check, and what follows.
#[test]
fn answers_of_the_server_have_their_reasons() {
    let table = [
        ("25006", Some(3), "Failed/False/ReadOnlyServer"),
        ("53100", Some(4), "Failed/False/DiskFull"),
        ("57014", Some(1), "Verifying/False/StatementBlocked"),
        ("55P03", Some(3), "Verifying/False/StatementBlocked"),
        ("57P03", None, "Verifying/False/ServerNotAccepting"),
        ("53300", None, "Verifying/False/ServerNotAccepting"),
        ("XX000", None, "Failed/False/VerificationFailed"),
        ("42883", Some(0), "Failed/False/VerificationFailed"),
    ];
    for (code, statement, story) in table {
        let mut world = World::ready();
        world.server.refuses = Some((code.to_owned(), statement));
        world.settle();
        assert_eq!(world.story(), story, "{code}");
        assert_eq!(world.condition("Degraded").0, "True", "{code}");
        assert!(world.condition("Ready").2.contains(code));
        world.server.refuses = None;
        world.settle();
        assert_eq!(world.phase(), "Ready", "{code}");
    }
}

#[test]
fn a_read_only_server_is_noticed_by_the_next_check() {
    let mut world = World::ready();
    world.server.read_only = true;
    world.settle();
    assert_eq!(world.story(), "Failed/False/ReadOnlyServer");
    world.server.read_only = false;
    world.settle();
    assert_eq!(world.phase(), "Ready");
}

/// Unreachable is waited for with growing pauses and fails after the deadline; nothing is replaced.
#[test]
fn g_74_unreachable_is_not_down() {
    let mut world = World::ready();
    let objects = world.objects.clone();
    world.server.up = false;
    world.settle();
    assert_eq!(world.story(), "Verifying/False/ServerUnreachable");
    world.advance(601);
    world.settle();
    assert_eq!(world.story(), "Failed/False/ServerUnreachable");
    assert_eq!(world.objects, objects);
    world.server.up = true;
    world.settle();
    assert_eq!(world.phase(), "Ready");
}

#[test]
fn an_interrupted_bootstrap_is_finished() {
    let mut world = World::ready();
    world.server.marked = false;
    world.settle();
    assert!(world.writes.contains(&"act finish-bootstrap".to_owned()), "{:?}", world.writes);
    assert_eq!(world.phase(), "Ready");
}

/// A reply that was lost after it took effect: what exists is taken, not made again (PG-16).
#[test]
fn pg_16_what_a_lost_reply_left_is_taken() {
    let mut world = World::new();
    world.server.roles.insert("admin".to_owned(), "from-a-lost-try".to_owned());
    world.server.databases.insert("mydb".to_owned(), "postgres".to_owned());
    world.bring_up();
    assert_eq!(world.server.databases["mydb"], "admin");
    let acts: Vec<_> = world.writes.iter().filter(|w| w.starts_with("act")).cloned().collect();
    assert_eq!(acts, ["act set-password", "act set-owner"]);
}

/// An action that the server refuses is a failure with a retry, not a hot loop.
#[test]
fn a_refused_action_is_retried_with_delay() {
    let mut world = World::ready();
    world.server.refuses_changes = Some("42501".to_owned());
    world.write_password("another-password");
    world.settle();
    assert_eq!(world.story(), "Failed/False/ActionFailed");
    world.writes.clear();
    for _ in 0..50 {
        world.pass();
        world.advance(1);
    }
    assert_eq!(world.writes, [] as [&str; 0], "not before the retry is due");
    world.advance(10);
    world.server.refuses_changes = None;
    world.settle();
    assert_eq!(world.phase(), "Ready");
}

#[test]
fn a_lost_superuser_password_is_told_where_it_matters() {
    let mut world = World::ready();
    let id = world.names().superuser_secret();
    world.server.refuse_superuser_for_good();
    world.objects.remove(&id);
    world.settle_rolling();
    assert_eq!(world.phase(), "Ready", "the application does not need it");
    world.write_password("another-password");
    world.settle();
    assert_eq!(world.story(), "Failed/False/SuperuserLoginFailed");
}

#[test]
fn another_collation_version_is_degraded() {
    let mut world = World::new();
    world.server.version = (160_003, "16.3".to_owned());
    world.bring_up();
    world.server.collation = ("2.36".to_owned(), "2.41".to_owned());
    world.settle();
    assert_eq!(world.condition("Ready").0, "True");
    let (status, reason, message) = world.condition("Degraded");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "CollationVersionMismatch"));
    assert!(["mydb", "2.36", "2.41"].iter().all(|w| message.contains(w)), "{message}");
    world.server.collation = ("2.36".to_owned(), "2.36".to_owned());
    world.settle();
    assert_eq!(world.condition("Degraded").0, "False");
}

/// What failed is looked at when its retry is due, not every few seconds.
#[test]
fn a_failed_rollout_waits_for_its_retry() {
    let mut world = World::ready();
    let names = world.names();
    world.objects.remove(&names.data_claim());
    world.objects.remove(&names.primary_pod());
    world.stall(guard_says("DataMissing: the data folder is empty\n"));
    world.settle();
    assert_eq!(world.story(), "Failed/False/DataMissing");
    let next: jiff::Timestamp =
        world.root["status"]["retry"]["nextTry"].as_str().unwrap().parse().unwrap();
    let plan = world.pass();
    assert_eq!(plan.wake, phased::Wake::At(next));
}

fn running(since: &str) -> Value {
    json!({
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady",
            "message": "containers with unready status: [postgres]"}],
        "containerStatuses": [{"name": "postgres", "image": "postgres:14", "imageID": "",
            "ready": false, "restartCount": 0, "state": {"running": {"startedAt": since}}}],
    })
}

/// A server that runs and hangs is told by its pod and its probe's words.
#[test]
fn a_hung_server_is_told_by_its_probe() {
    let mut world = World::ready();
    world.advance(3600);
    let now = world.now.to_string();
    world.stall(running(&now));
    world.settle();
    assert_eq!(world.story(), "Deploying/False/RolloutWaiting", "a start takes its time");
    world.advance(31);
    world.settle();
    assert_eq!(world.story(), "Deploying/False/ProbeFailing");
    let message = world.condition("Ready").2;
    assert!(message.contains("pod test-db-0") && message.contains("[postgres]"), "{message}");
    let uid = world.live(&world.names().primary_pod()).unwrap().uid().to_owned();
    world.events.push(event(&uid, "Unhealthy", "Readiness probe failed: no response"));
    world.settle();
    let message = world.condition("Ready").2;
    assert!(message.contains("Readiness probe failed: no response"), "{message}");
    world.advance(601);
    world.settle();
    assert_eq!(world.story(), "Failed/False/ProgressDeadlineExceeded");
    assert!(world.condition("Ready").2.contains("Readiness probe failed"));
    world.settle_rolling();
    assert_eq!(world.phase(), "Ready");
}

/// Last words are cut between lines, and what was fatal goes before chatter.
#[test]
fn long_last_words_are_cut_between_lines() {
    let chatter = "LOG:  something that says little goes on here\n".repeat(60);
    let fatal = "FATAL:  invalid value for parameter \"work_mem\": \"lots\"";
    let cases = [
        (format!("k and lost its beginning\n{chatter}{fatal}\n{chatter}"), fatal, true),
        (format!("{chatter}the end"), "the end", true),
        ("word ".repeat(300), "word", false),
    ];
    for (words, wanted, whole) in cases {
        let mut world = World::ready();
        world.stall(json!({"containerStatuses": [{"name": "postgres", "image": "postgres:14",
            "imageID": "", "ready": false, "restartCount": 3,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "message": words}}}]}));
        world.settle();
        let message = world.condition("Ready").2;
        let (_, told) = message.split_once("code 1: ").unwrap();
        assert!(told.contains(wanted) && !told.contains("beginning"), "{told}");
        assert!(told.chars().count() <= 501, "{told}");
        if whole {
            assert!(told.lines().all(|line| words.lines().any(|l| l == line)), "{told}");
        } else {
            assert!(told.trim_end_matches('…').split(' ').all(|w| w == "word"), "{told}");
        }
    }
}
