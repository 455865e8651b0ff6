//! Taking over clusters of the replaced operator, with objects as it writes them and as the API
//! server stores them.

use crate::ensemble::World;
use phased::{KindRef, ObjectId};
use serde_json::{Value, json};

fn fixture() -> Value {
    serde_json::from_str(include_str!("../fixtures/zookeeper-replaced.json")).unwrap()
}

fn kind_of(object: &Value) -> KindRef {
    use k8s_openapi::api::{apps::v1 as apps, core::v1 as core, policy::v1 as policy};
    match object["kind"].as_str().unwrap() {
        "ConfigMap" => KindRef::of::<core::ConfigMap>(true),
        "Service" => KindRef::of::<core::Service>(true),
        "ServiceAccount" => KindRef::of::<core::ServiceAccount>(true),
        "StatefulSet" => KindRef::of::<apps::StatefulSet>(true),
        "PodDisruptionBudget" => KindRef::of::<policy::PodDisruptionBudget>(true),
        other => panic!("{other}"),
    }
}

/// A running cluster of the replaced operator.
fn replaced() -> World {
    let fixture = fixture();
    let mut world = World::of(fixture["resource"].clone());
    for object in fixture["objects"].as_array().unwrap() {
        let id =
            ObjectId::new(kind_of(object), "default", object["metadata"]["name"].as_str().unwrap());
        let mut object = object.clone();
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "zookeeper.pravega.io/v1beta1", "kind": "ZookeeperCluster", "name": "zk",
            "uid": "uid-root", "controller": true, "blockOwnerDeletion": true,
        }]);
        world.store(&id, object);
    }
    world.servers.nodes.insert("/zookeeper-operator".into(), (String::new(), 0));
    world.servers.nodes.insert("/zookeeper-operator/zk".into(), ("CLUSTER_SIZE=3".into(), 0));
    for _ in 0..12 {
        world.tick();
    }
    assert_eq!(world.ready_pods().len(), 3);
    let settings = [("tickTime", "2000"), ("initLimit", "10"), ("syncLimit", "2")];
    let settings = settings.map(|(k, v)| (k.to_owned(), v.to_owned()));
    for n in 0..3 {
        world.servers.running.insert(n, settings.clone().into());
    }
    world.writes.clear();
    world
}

#[test]
fn no_pod_template_changes_and_no_pod_restarts() {
    let mut world = replaced();
    let before = world.set()["spec"].clone();
    let pods: Vec<Value> =
        (0..3).map(|n| world.pod(n).unwrap()["metadata"]["uid"].clone()).collect();
    world.settle();
    assert_eq!(world.set()["spec"], before, "nothing of the spec differs, the template above all");
    let after: Vec<Value> =
        (0..3).map(|n| world.pod(n).unwrap()["metadata"]["uid"].clone()).collect();
    assert_eq!(after, pods);
    assert_eq!(world.story(), "Ready/True/AllChecksPassed", "{}", world.root["status"]);
    assert_eq!(world.set()["metadata"]["labels"]["owner-rv"], "4711", "left as it was found");
    let records = &world.set()["metadata"]["annotations"];
    assert_eq!(records["steadfast.dev/scripts"], "Image");
    // Each object is written once, to hold what is declared of it, and never again.
    let applied = world.writes.iter().filter(|w| w.starts_with("apply")).count();
    assert_eq!(applied, fixture()["objects"].as_array().unwrap().len(), "{:?}", world.writes);
    world.writes.clear();
    for _ in 0..50 {
        world.stored.advance(300);
        world.pass();
    }
    assert_eq!(world.writes, [] as [&str; 0]);
}

/// No bring-up is shown for a cluster that serves, and old conditions keep their times.
#[test]
fn the_status_goes_on_from_what_is_stored() {
    let mut world = replaced();
    world.pass();
    let all = world.root["status"]["conditions"].as_array().unwrap().clone();
    let pods_ready = all.iter().find(|c| c["type"] == "PodsReady").unwrap();
    assert_eq!(pods_ready["lastTransitionTime"], "2025-06-01T08:00:00+02:00");
    assert_eq!(pods_ready["lastUpdateTime"], "2025-06-01T08:00:00+02:00");
    assert_eq!(world.root["status"]["currentVersion"], "0.2.15");
    world.settle();
    let other = ["Pending", "Provisioning"].map(|phase| format!("status {phase}"));
    assert!(!world.writes.iter().any(|w| other.contains(w)), "{:?}", world.writes);
}

/// The replaced operator restarted nobody for a changed setting: it is told, and rolls nobody.
#[test]
fn settings_that_never_came_into_force_are_told() {
    let mut world = replaced();
    world.servers.running.get_mut(&1).unwrap().insert("tickTime".into(), "1000".into());
    let before = world.set()["spec"]["template"].clone();
    world.settle();
    assert_eq!(world.set()["spec"]["template"], before);
    assert_eq!(world.condition("Ready").0, "True");
    let (status, reason, message) = world.condition("Degraded");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "ConfigurationNotInForce"));
    assert!(message.contains("zk-1") && message.contains("tickTime=1000"), "{message}");
    world.writes.clear();
    world.stored.advance(300);
    world.pass();
    assert_eq!(world.writes, [] as [&str; 0]);
}

/// An edit after the takeover rolls from the baseline, member by member, and back to it.
#[test]
fn an_edit_after_the_takeover_rolls_from_the_baseline() {
    let mut world = replaced();
    world.settle();
    let before = world.set()["spec"]["template"].clone();
    world.edit(|root| root["spec"]["config"]["syncLimit"] = json!(5));
    world.settle();
    assert_ne!(world.set()["spec"]["template"], before);
    assert!(world.servers.running.values().all(|s| s["syncLimit"] == "5"));
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}

/// An upgrade that the replaced operator began keeps its clock.
#[test]
fn an_upgrade_under_way_keeps_its_clock() {
    let mut world = replaced();
    let mut template = world.set()["spec"]["template"].clone();
    template["spec"]["containers"][0]["image"] = json!("pravega/zookeeper:bad");
    let id = world.names().stateful_set();
    world.meddle(&id, |set| set["spec"]["template"] = template);
    world.edit(|root| {
        root["spec"]["image"]["tag"] = json!("bad");
        root["status"]["targetVersion"] = json!("bad");
        root["status"]["conditions"][1] = json!({"type": "Upgrading", "status": "True",
            "reason": "Updating Zookeeper", "message": "1",
            "lastUpdateTime": "2025-12-31T23:55:00Z", "lastTransitionTime": "2025-12-31T23:50:00Z"});
    });
    for _ in 0..4 {
        world.tick();
    }
    world.pass();
    assert_eq!(world.condition("Error").0, "False", "five of its ten minutes are over");
    assert_eq!(world.condition("Upgrading").2, "1");
    world.wait(330);
    assert_eq!(world.condition("Error").1, "UpgradeFailed", "{}", world.root["status"]);
}

/// So does a failed one: its set is not even taken over before it has ended.
#[test]
fn a_failed_upgrade_stays_failed() {
    let mut world = replaced();
    let mut template = world.set()["spec"]["template"].clone();
    template["spec"]["containers"][0]["image"] = json!("pravega/zookeeper:bad");
    let id = world.names().stateful_set();
    world.meddle(&id, |set| set["spec"]["template"] = template);
    world.edit(|root| {
        root["spec"]["image"]["tag"] = json!("bad");
        root["status"]["conditions"][1]["status"] = json!("True");
        root["status"]["conditions"][2] = json!({"type": "Error", "status": "True",
            "reason": "UpgradeFailed", "message": "progress deadline exceeded"});
    });
    for _ in 0..4 {
        world.tick();
    }
    world.settle();
    assert_eq!(world.phase(), "Failed");
    assert!(!world.writes.iter().any(|w| w.contains("StatefulSet")), "{:?}", world.writes);
    world.edit(|root| root["spec"]["image"]["tag"] = json!("0.2.15"));
    world.settle();
    assert_eq!(world.story(), "Ready/True/AllChecksPassed", "{}", world.root["status"]);
}
