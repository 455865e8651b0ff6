//! What is refused, and how each refusal is healed by the corrected manifest or fact alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::{World, seed};
use operators::database::dependencies;
use phased::Trouble;
use phased::fact::{Fate, Reach};
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
        ("/spec/storage/size", json!("20Gi"), "StorageExpansionRefused"),
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
fn an_image_of_an_unsupported_major_version_is_refused() {
    for image in [
        "postgres:13",
        "postgres:19beta1",
        "postgres:19",
        "db/postgresql:41.2-alpine",
        "postgres:99",
    ] {
        let mut root = seed();
        root["spec"]["image"] = json!(image);
        let mut world = World::of(root);
        world.settle();
        let refused = operators::database::image::major_hint(image).is_some();
        assert_eq!(refused, image != "postgres:19beta1", "a name that tells nothing is no hint");
        if refused {
            assert_eq!(world.story(), "Pending/False/InvalidSpec", "{image}");
            assert!(world.condition("Ready").2.contains("14 to 18"));
            assert!(world.objects.is_empty());
        }
    }
    for (number, version) in [(130_012, "13.12"), (190_000, "19.0"), (990_000, "99.0")] {
        let mut world = World::ready();
        world.server.version = (number, version.to_owned());
        world.settle();
        assert_eq!(world.story(), "Failed/False/UnsupportedServer", "{version}");
    }
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
