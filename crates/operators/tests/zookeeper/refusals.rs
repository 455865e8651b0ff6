//! What a ZookeeperCluster refuses, with the rest of the spec in force.

use crate::ensemble::{World, three};
use serde_json::{Value, json};

/// The Ready condition's reason and message after an edit of a running cluster.
fn edited(change: impl FnOnce(&mut Value)) -> (World, String, String) {
    let mut world = World::ready();
    world.edit(change);
    world.settle();
    let (status, reason, message) = world.condition("Ready");
    assert_eq!(status, "False", "{}", world.root["status"]);
    (world, reason, message)
}

/// ZK-13, ZK-15, field case C-17's neighbours: what the servers cannot run with changes nothing.
#[test]
fn zk_13_an_impossible_spec_changes_nothing() {
    let cases = [
        ("spec.config.syncLimit", json!({"config": {"syncLimit": 0}})),
        ("spec.config.minSessionTimeout", json!({"config": {"minSessionTimeout": 50_000}})),
        ("spec.config.additionalConfig", json!({"config": {"additionalConfig": {"a": "b\nc=d"}}})),
        ("spec.replicas", json!({"replicas": 0})),
        ("spec.ports[1]", json!({"ports": [{"name": "a", "containerPort": 2181}]})),
        ("spec.labels", json!({"labels": {"a b": "c"}})),
        ("spec.image", json!({"image": {"tag": "a b"}})),
    ];
    for (path, spec) in cases {
        let mut world = World::ready();
        let before = world.objects.clone();
        world.edit(|root| stored_merge(&mut root["spec"], &spec));
        world.settle();
        let (_, reason, message) = world.condition("Ready");
        assert_eq!(reason, "InvalidSpec", "{path}: {message}");
        assert!(message.contains(path), "{message}");
        assert_eq!(world.objects, before, "{path}");
        world.edit(|root| root["spec"] = json!({"replicas": 3}));
        world.settle();
        assert_eq!(world.story(), "Ready/True/AllChecksPassed", "{path}");
    }
}

fn stored_merge(into: &mut Value, from: &Value) {
    crate::ensemble::stored::merge(into, from);
}

#[test]
fn a_name_leaves_room_for_the_services() {
    let mut root = three();
    root["metadata"]["name"] = json!("a".repeat(51));
    let mut world = World::of(root);
    world.pass();
    assert!(world.condition("Ready").2.contains("metadata.name"));
}

/// The family is decided once: an image without scripts in its name is not written over one that
/// runs them, and the rest of the edit is in force.
#[test]
fn the_family_never_flips() {
    let (world, reason, message) = edited(|root| {
        root["spec"]["image"] = json!({"repository": "zookeeper", "tag": "3.9"});
        root["spec"]["clientService"] = json!({"annotations": {"a": "b"}});
    });
    assert_eq!(reason, "ImageFamilyChangeRefused");
    assert!(message.contains("spec.image.scripts: Image"), "{message}");
    let image = &world.set()["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "pravega/zookeeper:0.2.15");
    let client = &world.objects[&world.names().client_service()];
    assert_eq!(client["metadata"]["annotations"]["a"], "b");
}

/// A mirror of the image under another name, said to be of the same family.
#[test]
fn a_mirror_is_of_the_family_that_it_is_said_to_be() {
    let mut world = World::ready();
    world.edit(|root| {
        let image = json!({"repository": "mirror.example/zk", "tag": "0.2.15", "scripts": "Image"});
        root["spec"]["image"] = image;
    });
    world.settle();
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    assert_eq!(world.images(), ["mirror.example/zk:0.2.15"; 3]);
    let set = &world.set()["metadata"]["annotations"];
    assert_eq!(set["steadfast.dev/scripts"], "Image");
}

#[test]
fn an_image_without_scripts_is_refused_in_words() {
    let mut root = three();
    root["spec"]["image"] = json!({"repository": "zookeeper", "tag": "3.9"});
    let mut world = World::of(root);
    world.pass();
    let (_, reason, message) = world.condition("Ready");
    assert_eq!(reason, "InvalidSpec");
    assert!(message.contains("scripts"), "{message}");
    assert!(world.objects.is_empty());
}

/// R7: registered addresses hold the port.
#[test]
fn a_registered_port_does_not_change() {
    let (world, reason, _) = edited(|root| {
        root["spec"]["ports"] = json!([{"name": "quorum", "containerPort": 3000}]);
        root["spec"]["pod"] = json!({"annotations": {"note": "new"}});
    });
    assert_eq!(reason, "PortChangeRefused");
    let config = &world.objects[&world.names().config_map()];
    assert!(config["data"]["env.sh"].as_str().unwrap().contains("QUORUM_PORT=2888\n"));
    assert_eq!(world.pod(0).unwrap()["metadata"]["annotations"]["note"], "new");
}

/// ZK-18, ZK-26, R8: storage stays, with one clear condition, and the rest is in force.
#[test]
fn zk_26_storage_does_not_change() {
    let cases = [
        json!({"persistence": {"spec": {"storageClassName": "fast"}}}),
        json!({"persistence": {"spec": {"resources": {"requests": {"storage": "30Gi"}}}}}),
        json!({"storageType": "ephemeral"}),
    ];
    for case in cases {
        let claims = World::ready().set()["spec"]["volumeClaimTemplates"].clone();
        let (world, reason, message) = edited(|root| {
            stored_merge(&mut root["spec"], &case);
            root["spec"]["pod"] = json!({"annotations": {"note": "new"}});
        });
        assert_eq!(reason, "StorageChangeRefused", "{message}");
        assert_eq!(world.set()["spec"]["volumeClaimTemplates"], claims);
        assert_eq!(world.pod(0).unwrap()["metadata"]["annotations"]["note"], "new", "{case}");
    }
}
