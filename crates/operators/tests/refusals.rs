//! What is refused, what fails, and how each is healed by the corrected manifest or fact alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::{World, seed};
use operators::database::dependencies;
use phased::fact::{Fate, Reach, SeenEvent};
use phased::{ObjectId, Trouble};
use serde_json::{Value, json};

fn trouble(fate: Fate, reason: &str, message: &str) -> Trouble {
    Trouble { fate, reason: reason.to_owned(), message: message.to_owned() }
}

/// Specs that admission would refuse, stored under a laxer definition (PG-46): nothing is made,
/// each wrong path is named, and the corrected manifest heals.
#[test]
fn invalid_specs_are_refused_by_path() {
    let long = "é".repeat(40);
    let table: Vec<(&str, Value, &[&str])> = vec![
        ("/spec/databaseName", json!("x\"; DROP TABLE y; --"), &["spec.databaseName", "letters"]),
        ("/spec/databaseName", json!(long), &["spec.databaseName", "80 bytes"]),
        ("/spec/databaseName", json!("postgres"), &["spec.databaseName", "choose another"]),
        ("/spec/databaseName", json!("template1"), &["spec.databaseName"]),
        ("/spec/username", json!("postgres"), &["spec.username"]),
        ("/spec/username", json!("pg_admin"), &["spec.username"]),
        ("/spec/username", json!("a$$b"), &["spec.username"]),
        ("/spec/username", json!(""), &["spec.username", "empty"]),
        ("/spec/image", json!("postgres:17 "), &["spec.image", "\"postgres:17 \""]),
        ("/spec/image", json!("postgres:9.6"), &["spec.image", "14 to 18"]),
        ("/spec/image", json!("a//b"), &["spec.image"]),
        ("/spec/storage/size", json!("much"), &["spec.storage.size", "10Gi"]),
        ("/spec/storage/size", json!("-1Gi"), &["spec.storage.size"]),
        ("/spec/replicas", json!(0), &["spec.replicas"]),
        ("/spec/storage/storageClass", json!("../../secrets"), &["spec.storage.storageClass"]),
        (
            "/spec/podTemplate",
            json!({"labels": {"a b": "c"}}),
            &["spec.podTemplate.labels[\"a b\"]"],
        ),
        ("/spec/podTemplate", json!({"labels": {"a": "c d"}}), &["spec.podTemplate.labels[\"a\"]"]),
        ("/spec/podTemplate", json!({"annotations": {"": "c"}}), &["spec.podTemplate.annotations"]),
        ("/spec/podTemplate", json!({"nodeSelector": {"a/b/c": ""}}), &["nodeSelector"]),
        ("/spec/podTemplate", json!({"serviceAccountName": "A_B"}), &["serviceAccountName"]),
        ("/spec/progressDeadlineSeconds", json!(1), &["spec.progressDeadlineSeconds"]),
        ("/spec/parameters", json!({"port": "1"}), &["spec.parameters[\"port\"]"]),
        ("/spec/parameters", json!({"a=b": "1"}), &["spec.parameters[\"a=b\"]"]),
        ("/spec/parameters", json!({"a\nb": "1"}), &["spec.parameters[\"a\\nb\"]"]),
        ("/spec/parameters", json!({"work_mem": "\0"}), &["NUL"]),
        ("/spec/externalDependencies", json!([{"name": "x"}]), &["spec.externalDependencies[0]"]),
    ];
    for (path, value, words) in table {
        let mut root = seed();
        set(&mut root, path, value.clone());
        let mut world = World::of(root);
        world.settle();
        assert_eq!(world.story(), "Pending/False/InvalidSpec", "{path} {value}");
        let message = world.condition("Ready").2;
        for word in words {
            assert!(message.contains(word), "{path}: {word:?} not in {message:?}");
        }
        assert!(world.objects.is_empty(), "{path}: nothing is made");
        let good = seed()["spec"].clone();
        world.edit(|root| root["spec"] = good);
        world.bring_up();
    }
}

/// One answer lists all.
#[test]
fn all_wrong_paths_are_told_at_once() {
    let mut root = seed();
    root["spec"]["databaseName"] = json!("pg_x");
    root["spec"]["username"] = json!("postgres");
    root["spec"]["parameters"] = json!({"port": "1", "listen_addresses": "*"});
    let mut world = World::of(root);
    world.settle();
    let message = world.condition("Ready").2;
    for path in ["databaseName", "username", "[\"port\"]", "[\"listen_addresses\"]"] {
        assert!(message.contains(path), "{message}");
    }
}

#[test]
fn names_that_do_not_fit_are_refused() {
    for name in ["a".repeat(53), "1digit".to_owned(), "dot.ted".to_owned(), "ends-".to_owned()] {
        let mut root = seed();
        root["metadata"]["name"] = json!(name);
        let mut world = World::of(root);
        world.settle();
        assert_eq!(world.story(), "Pending/False/InvalidSpec", "{name}");
        assert!(world.condition("Ready").2.contains("metadata.name"));
    }
}

fn set(root: &mut Value, path: &str, value: Value) {
    let (parent, key) = path.rsplit_once('/').unwrap();
    root.pointer_mut(parent).unwrap()[key] = value;
}

/// Changes that the recorded facts forbid: the running server is left alone, a valid edit beside
/// them is applied, and the old value heals.
#[test]
fn changes_against_the_data_are_held_back() {
    let table = [
        ("/spec/storage/size", json!("5Gi"), "StorageShrinkRefused"),
        ("/spec/storage/size", json!("20Gi"), "StorageGrowthNotYetSupported"),
        ("/spec/storage/storageClass", json!("fast"), "StorageClassChangeRefused"),
        ("/spec/databaseName", json!("other"), "RenameRefused"),
        ("/spec/username", json!("other"), "RenameRefused"),
        ("/spec/image", json!("postgres:17"), "MajorVersionChangeRefused"),
        ("/spec/image", json!("reg.example.com:5000/postgres:13.2-alpine"), "InvalidSpec"),
    ];
    for (path, value, reason) in table {
        let mut world = World::ready();
        let pod = world.objects[&world.names().primary_pod()].clone();
        world.edit(|root| set(root, path, value.clone()));
        world.settle_rolling();
        assert_eq!(world.story(), format!("Pending/False/{reason}"), "{path} {value}");
        assert_eq!(world.condition("Progressing").0, "False");
        assert_eq!(world.condition("Degraded").1, reason);
        assert!(world.condition("Ready").2.contains(&path[1..].replace('/', ".")));
        assert_eq!(world.objects[&world.names().primary_pod()], pod, "{path}: server untouched");
        let old = seed()["spec"].clone();
        world.edit(|root| root["spec"] = old);
        world.settle_rolling();
        assert_eq!(world.phase(), "Ready", "{path}: the old value heals");
    }
}

#[test]
fn pg_32_a_valid_edit_beside_a_refused_one_is_applied() {
    let mut world = World::ready();
    world.edit(|root| {
        root["spec"]["storage"]["size"] = json!("5Gi");
        root["spec"]["parameters"] = json!({"work_mem": "64MB"});
    });
    world.settle_rolling();
    assert_eq!(world.story(), "Pending/False/StorageShrinkRefused");
    let names = world.names();
    let conf = &world.objects[&names.config_map()]["data"]["postgresql.conf"];
    assert!(conf.as_str().unwrap().contains("work_mem = '64MB'"));
    let claim = &world.objects[&names.stateful_set()]["spec"]["volumeClaimTemplates"][0];
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "10Gi");
    world.objects.remove(&names.client_service());
    world.settle_rolling();
    assert!(world.objects.contains_key(&names.client_service()), "children are still tended");
}

/// Within a major version, and between names that tell none, an image is changed freely.
#[test]
fn an_image_of_the_same_major_version_is_taken() {
    for (image, server) in [
        ("postgres:14.13-alpine", (140_013, "14.13")),
        // The demo plays every image with the one server that is installed.
        ("postgres:14.13", (150_018, "15.18")),
        ("registry.example.com:5000/db/pg:whatever", (140_012, "14.12")),
    ] {
        let mut world = World::ready();
        world.root["status"]["serverVersion"] = json!(server.1);
        world.server.version = (server.0, server.1.to_owned());
        world.edit(|root| root["spec"]["image"] = json!(image));
        world.settle_rolling();
        assert_eq!(world.phase(), "Ready", "{image}");
        let set = &world.objects[&world.names().stateful_set()];
        assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["image"], image);
    }
}

#[test]
fn standbys_are_refused_plainly() {
    let mut root = seed();
    root["spec"]["replicas"] = json!(3);
    let mut world = World::of(root);
    world.settle();
    assert_eq!(world.story(), "Pending/False/StandbysNotYetSupported");
    assert!(world.objects.is_empty());
    world.edit(|root| root["spec"]["replicas"] = json!(1));
    world.bring_up();
    let objects = world.objects.clone();
    world.edit(|root| root["spec"]["replicas"] = json!(3));
    world.settle();
    assert_eq!(world.story(), "Pending/False/StandbysNotYetSupported");
    assert_eq!(world.objects, objects, "a running server is left alone");
}

#[test]
fn images_are_taken_by_any_name() {
    let digest = "0".repeat(64);
    for image in [
        format!("postgres@sha256:{digest}"),
        "registry.example.com:5000/db/pg".to_owned(),
        "registry.example.com:5000/db/timescale:pg16-ts2.16".to_owned(),
        format!("postgres:17@sha256:{digest}"),
    ] {
        let mut root = seed();
        root["spec"]["image"] = json!(image);
        World::of(root).bring_up();
    }
}

#[test]
fn a_missing_storage_class_is_named() {
    let mut root = seed();
    root["spec"]["storage"]["storageClass"] = json!("nowhere");
    let mut world = World::of(root);
    world.settle();
    assert_eq!(world.story(), "Provisioning/False/StorageClassNotFound");
    assert!(world.condition("Ready").2.contains("\"nowhere\""));
    assert!(!world.objects.contains_key(&world.names().stateful_set()));
    world.edit(|root| {
        root["spec"]["storage"].as_object_mut().unwrap().remove("storageClass");
    });
    world.bring_up();
}

fn with_dependency(dependency: Value) -> World {
    let mut root = seed();
    root["spec"]["externalDependencies"] = json!([dependency]);
    World::of(root)
}

#[test]
fn a_dependency_that_is_down_is_waited_for() {
    let mut world = with_dependency(json!({"name": "broker", "address": "broker.mq.svc:5672"}));
    let reach = Reach::Tcp { host: "broker.mq.svc".to_owned(), port: 5672, timeout_seconds: 5 };
    let refused = trouble(Fate::WorldMayHeal, "Unreachable", "connection refused");
    world.down.insert(reach.clone(), refused.clone());
    world.settle();
    assert_eq!(world.story(), "Provisioning/False/ExternalDependencyUnavailable");
    let message = world.condition("Ready").2;
    assert!(message.contains("broker") && message.contains("connection refused"), "{message}");
    assert!(world.objects.is_empty(), "nothing is made before it answers");
    let plan = world.pass();
    let in_30 = world.now.checked_add(jiff::SignedDuration::from_secs(30)).unwrap();
    assert_eq!(plan.wake, phased::Wake::At(in_30));
    world.down.clear();
    world.bring_up();

    // Down again while Ready: told, and the server is left running (PG-36).
    let objects = world.objects.clone();
    world.down.insert(reach, refused);
    world.settle();
    assert_eq!(world.story(), "Provisioning/False/ExternalDependencyUnavailable");
    assert_eq!(world.objects, objects);
    world.down.clear();
    world.settle();
    assert_eq!(world.phase(), "Ready");
}

#[test]
fn pg_37_only_permitted_hosts_are_tried() {
    for dependency in [
        json!({"name": "meta", "address": "169.254.169.254:80"}),
        json!({"name": "meta", "url": "http://169.254.169.254/latest"}),
        json!({"name": "meta", "url": "http://broker.mq.svc.evil.example/"}),
    ] {
        let mut world = with_dependency(dependency.clone());
        world.settle();
        assert_eq!(world.story(), "Provisioning/False/DependencyRefused", "{dependency}");
        assert!(world.objects.is_empty());
    }
    let patterns = ["*.svc".to_owned(), "*.svc.cluster.local".to_owned()];
    for (host, permitted) in [
        ("a.b.svc", true),
        ("A.B.SVC.", true),
        ("a.b.svc.cluster.local", true),
        ("svc", false),
        ("a.b.svc.cluster.local.evil", false),
        ("localhost", false),
    ] {
        assert_eq!(dependencies::permits(&patterns, host), permitted, "{host}");
    }
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
    world.server.roles.insert("postgres".to_owned(), "the-old-one".to_owned());
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

fn deletes(world: &World) -> Vec<&str> {
    world.writes.iter().filter_map(|w| w.strip_prefix("delete ")).collect()
}

/// Deletion goes through in every phase, and keeps or removes the data as the policy says.
#[test]
fn pg_02_deletion_in_every_phase() {
    for policy in ["Retain", "Delete"] {
        for passes in 0..12 {
            let mut world = World::new();
            for _ in 0..passes {
                world.pass();
                world.roll_out();
            }
            let had_finalizer = world.root["metadata"].get("finalizers").is_some();
            let before = world.objects.len();
            world.writes.clear();
            world.delete_root(policy);
            world.settle();
            assert_eq!(world.gone, had_finalizer, "{policy} after {passes}");
            assert!(world.objects.len() <= before, "nothing is created any more");
            let gone = deletes(&world);
            if policy == "Retain" {
                assert!(gone.is_empty(), "{gone:?}");
            } else {
                assert!(gone.iter().all(|g| g.contains("Secret") || g.contains("Claim")));
                assert!(!world.objects.contains_key(&world.names().data_claim()));
                assert!(!world.objects.contains_key(&world.names().superuser_secret()));
            }
        }
    }
}

/// Down dependency, invalid spec, Failed: the delete does not wait for any of them.
#[test]
fn pg_02_deletion_past_every_gate() {
    let mut invalid = World::ready();
    invalid.edit(|root| root["spec"]["databaseName"] = json!("pg_x"));
    invalid.settle();
    let mut failed = World::ready();
    failed.server.read_only = true;
    failed.settle();
    for mut world in [invalid, failed] {
        world.delete_root("Delete");
        world.settle();
        assert!(world.gone);
    }
}

/// The loser of a name clash removes nothing of the winner's (PG-01).
#[test]
fn pg_01_only_our_own_volumes_go() {
    let mut world = World::new();
    let names = world.names();
    let winner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {}});
    world.store(&names.stateful_set(), winner);
    let labels = operators::database::labels::child("test-db");
    world.store(&names.data_claim(), json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"labels": labels, "annotations": {"steadfast.dev/resource-uid": "uid-other"}}}));
    for _ in 0..5 {
        world.pass();
    }
    assert_eq!(world.condition("Ready").1, "NameConflict");
    world.delete_root("Delete");
    world.settle();
    assert!(world.gone);
    assert!(world.objects.contains_key(&names.stateful_set()));
    assert!(world.objects.contains_key(&names.data_claim()));
}

/// An orphaning delete keeps everything, whatever the policy (G-42).
#[test]
fn g_42_an_orphaning_delete_keeps_everything() {
    let mut world = World::ready();
    let objects = world.objects.clone();
    world.root["metadata"]["finalizers"].as_array_mut().unwrap().push(json!("orphan"));
    world.delete_root("Delete");
    world.settle();
    assert_eq!(world.objects, objects);
    assert_eq!(world.root["metadata"]["finalizers"], json!(["orphan"]));
}

/// A delete that the server refuses is told and tried again (PG-04).
#[test]
fn pg_04_a_refused_clean_up_is_told() {
    let mut world = World::ready();
    let id: ObjectId = world.names().data_claim();
    world.refuses.insert(id, trouble(Fate::UserMustAct, "Forbidden", "no delete for you"));
    world.delete_root("Delete");
    world.pass();
    assert!(!world.gone);
    let (_, reason, message) = world.condition("Ready");
    assert_eq!(reason, "Deleting");
    assert!(message.contains("no delete for you"), "{message}");
    world.refuses.clear();
    world.settle();
    assert!(world.gone);
}
