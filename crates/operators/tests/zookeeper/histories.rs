//! Histories of a ZookeeperCluster: bring-up, rest, repairs, sizes, rolls, deletion, crashes.

use crate::ensemble::{World, three};
use phased::fact::{Fate, Trouble};
use serde_json::json;

const RECORD: &str = "/zookeeper-operator/zk";

#[test]
fn five_phases_in_order_and_the_status_of_the_replaced_operator() {
    let mut world = World::of(three());
    let mut phases = Vec::new();
    for _ in 0..60 {
        world.pass();
        if phases.last() != Some(&world.phase().to_owned()) {
            phases.push(world.phase().to_owned());
        }
        world.tick();
    }
    assert_eq!(phases, ["Pending", "Provisioning", "Deploying", "Forming", "Ready"]);
    let status = &world.root["status"];
    assert_eq!(status["members"]["ready"], json!(["zk-0", "zk-1", "zk-2"]));
    assert_eq!(status["members"].get("unready"), None, "absent, never null (ZK-20)");
    assert_eq!((&status["replicas"], &status["readyReplicas"]), (&json!(3), &json!(3)));
    assert_eq!(status["externalClientEndpoint"], "N/A");
    assert_eq!(status["metaRootCreated"], true);
    assert_eq!(status["currentVersion"], "0.2.15");
    assert_eq!(status.get("targetVersion"), None);
    assert_eq!(status["quorum"]["leader"], "zk-0");
    assert_eq!(status["quorum"]["followers"], json!(["zk-1", "zk-2"]));
    assert_eq!(world.condition("PodsReady"), ("True".into(), String::new(), String::new()));
    assert_eq!(world.condition("Upgrading").0, "False");
    assert_eq!(world.condition("Error").0, "False");
    assert_eq!(world.condition("Ready").1, "AllChecksPassed");
    assert_eq!(world.servers.nodes[RECORD].0, "CLUSTER_SIZE=3");
    assert_eq!(world.servers.nodes["/zookeeper-operator"].0, "");
}

/// Fault catalogue R3, ZK-21.
#[test]
fn zk_21_a_settled_cluster_is_not_written() {
    let mut world = World::ready();
    for _ in 0..100 {
        world.stored.advance(300);
        world.pass();
    }
    assert_eq!(world.writes, [] as [&str; 0]);
}

/// A lost child is made again, and just that one is written.
#[test]
fn a_lost_child_alone_is_made_again() {
    let names = World::ready().names();
    for id in [
        names.config_map(),
        names.headless_service(),
        names.client_service(),
        names.admin_service(),
        names.budget(),
    ] {
        let mut world = World::ready();
        world.stored.objects.remove(&id);
        world.pass();
        let applied: Vec<&String> =
            world.writes.iter().filter(|w| w.starts_with("apply")).collect();
        assert_eq!(applied, [&format!("apply {id}")]);
        world.settle();
        assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    }
}

/// A declared field that somebody changed is taken back, and told; what is not declared stays.
#[test]
fn an_edit_of_a_child_is_taken_back() {
    let mut world = World::ready();
    let id = world.names().client_service();
    world.meddle(&id, |service| {
        service["spec"]["ports"][0]["port"] = json!(9999);
        service["spec"]["clusterIP"] = json!("10.0.0.9");
        service["metadata"]["annotations"]["cloud"] = json!("theirs");
    });
    let plan = world.pass();
    assert!(plan.events.iter().any(|e| e.reason == "EditReverted"), "{plan:?}");
    let service = &world.objects[&id];
    assert_eq!(service["spec"]["ports"][0]["port"], 2181);
    assert_eq!(service["spec"]["clusterIP"], "10.0.0.9", "ZK-22");
    assert_eq!(service["metadata"]["annotations"]["cloud"], "theirs");
    world.settle();
    assert_eq!(world.root["status"]["internalClientEndpoint"], "10.0.0.9:2181");
}

/// ZK-16 and ZK-25: one pod at a time, each after the former has rejoined, and Ready only when every
/// process says the new value.
#[test]
fn zk_16_a_changed_setting_rolls_member_by_member() {
    let mut world = World::ready();
    let template = world.set()["spec"]["template"].clone();
    world.edit(|root| root["spec"]["config"] = json!({"tickTime": 3000}));
    let mut partitions = Vec::new();
    for _ in 0..80 {
        world.pass();
        let partition = world.set()["spec"]["updateStrategy"]["rollingUpdate"]["partition"].clone();
        if partitions.last() != Some(&partition) {
            partitions.push(partition);
        }
        assert!(world.ready_pods().len() >= 2, "a quorum stays");
        let old = world.servers.running.values().any(|s| s["tickTime"] == "2000");
        assert!(!old || world.phase() != "Ready", "Ready while a process runs the old value");
        world.tick();
    }
    assert_eq!(partitions, [json!(3), json!(2), json!(1), json!(0)]);
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    assert!(world.servers.running.values().all(|s| s["tickTime"] == "3000"));
    assert_eq!(world.condition("Upgrading").0, "False", "only another image is an upgrade");
    // Taken back, the template is the very one that was there.
    world.edit(|root| root["spec"]["config"] = json!({}));
    world.settle();
    assert_eq!(world.set()["spec"]["template"], template);
    assert!(world.servers.running.values().all(|s| s["tickTime"] == "2000"));
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}

/// A pod that is ready and not back in the ensemble holds the next one (ZK-27).
#[test]
fn zk_27_the_next_pod_waits_until_the_former_has_rejoined() {
    let mut world = World::ready();
    world.edit(|root| root["spec"]["pod"]["annotations"]["note"] = json!("new"));
    world.servers.mute.insert(2);
    for _ in 0..40 {
        world.pass();
        world.tick();
    }
    assert_eq!(world.set()["spec"]["updateStrategy"]["rollingUpdate"]["partition"], 2);
    assert_eq!(world.condition("Ready").1, "MemberRejoining", "{}", world.root["status"]);
    assert_eq!(world.ready_pods().len(), 3);
    world.servers.mute.clear();
    world.settle();
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    assert_eq!(world.pod(0).unwrap()["metadata"]["annotations"]["note"], "new");
}

/// ZK-01: the record's parent exists and its child does not; the size changed meanwhile.
#[test]
fn zk_01_a_half_made_record_is_completed() {
    let mut world = World::ready();
    world.servers.nodes.remove(RECORD);
    world.edit(|root| root["spec"]["replicas"] = json!(2));
    world.settle();
    assert_eq!(world.servers.nodes[RECORD].0, "CLUSTER_SIZE=2");
    assert_eq!(world.ready_pods().len(), 2);
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}

/// ZK-02: a node that a namesake left behind is brought to the new size.
#[test]
fn zk_02_a_record_of_a_namesake_is_taken_over() {
    let mut world = World::of(three());
    world.servers.nodes.insert("/zookeeper-operator".into(), (String::new(), 0));
    world.servers.nodes.insert(RECORD.into(), ("CLUSTER_SIZE=5".into(), 7));
    world.settle();
    assert_eq!(world.servers.nodes[RECORD], ("CLUSTER_SIZE=3".into(), 8));
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}

/// ZK-03: the set keeps its size until the record is written, and says so.
#[test]
fn zk_03_a_refused_record_keeps_the_size() {
    let mut world = World::ready();
    world.servers.refuses = Some(-4);
    world.edit(|root| root["spec"]["replicas"] = json!(1));
    world.wait(300);
    assert_eq!(world.set()["spec"]["replicas"], 3);
    assert_eq!(world.ready_pods().len(), 3);
    let (status, reason, message) = world.condition("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "WriteFailed"), "{message}");
    world.servers.refuses = None;
    world.settle();
    assert_eq!(world.ready_pods().len(), 1);
    assert_eq!(world.servers.voters.len(), 1);
}

/// ZK-10: nobody is reached, so nobody is removed.
#[test]
fn zk_10_no_member_is_removed_without_a_quorum() {
    let mut world = World::ready();
    world.servers.cut_off = true;
    world.edit(|root| root["spec"]["replicas"] = json!(1));
    world.wait(300);
    assert_eq!(world.set()["spec"]["replicas"], 3);
    assert_eq!(world.condition("Ready").1, "SizeNotRecorded");
    world.servers.cut_off = false;
    let mut sizes = Vec::new();
    for _ in 0..40 {
        world.pass();
        let size = world.set()["spec"]["replicas"].clone();
        if sizes.last() != Some(&size) {
            sizes.push(size);
        }
        world.tick();
    }
    assert_eq!(sizes, [json!(3), json!(2), json!(1)], "one member at a time");
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}

/// ZK-11: with one of three broken, those who would stay are no majority.
#[test]
fn zk_11_a_healthy_member_is_not_removed_beside_a_broken_one() {
    let mut world = World::ready();
    world.break_pod(0);
    world.edit(|root| root["spec"]["replicas"] = json!(2));
    world.wait(300);
    assert_eq!(world.set()["spec"]["replicas"], 3);
    assert_eq!(world.condition("Ready").1, "QuorumAtRisk", "{}", world.root["status"]);
    world.mend_pod(0);
    world.settle();
    assert_eq!(world.ready_pods().len(), 2);
    assert_eq!(world.servers.voters.len(), 2);
}

/// ZK-31: a stop hook that never ran leaves a dead voter, which is removed.
#[test]
fn zk_31_a_dead_voter_does_not_stay() {
    let mut world = World::ready();
    world.servers.mute.insert(9);
    world.servers.voters.insert(9);
    world.settle();
    assert!(!world.servers.voters.contains(&9));
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}

/// ZK-07 and #453: a size that changes before any server was ready needs no record.
#[test]
fn zk_07_the_size_may_change_before_the_first_server_is_ready() {
    let mut world = World::of(three());
    for _ in 0..3 {
        world.pass();
    }
    world.edit(|root| root["spec"]["replicas"] = json!(1));
    world.settle();
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    assert_eq!(world.ready_pods().len(), 1);
    world.edit(|root| root["spec"]["replicas"] = json!(3));
    world.settle();
    assert_eq!(world.servers.voters.len(), 3);
    assert_eq!(world.servers.nodes[RECORD].0, "CLUSTER_SIZE=3");
}

/// ZK-30: pods that are ready without a quorum are no ensemble.
#[test]
fn zk_30_no_quorum_is_told() {
    let mut world = World::ready();
    world.servers.mute = [1, 2].into();
    world.wait(60);
    let (status, reason, _) = world.condition("Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NoQuorum"));
    assert_eq!(world.condition("Degraded").1, "MembersUnavailable");
    world.servers.mute.clear();
    world.settle();
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}

/// The finalizer is there for volumes that are to go, and only then; a policy that changes on the
/// way out keeps what is left (ZK-32).
#[test]
fn zk_32_volumes_go_with_the_policy_as_it_is_now() {
    let mut world = World::ready();
    assert!(world.root["metadata"]["finalizers"].is_null());
    world.edit(|root| root["spec"]["persistence"] = json!({"reclaimPolicy": "Delete"}));
    world.settle();
    assert_eq!(world.root["metadata"]["finalizers"], json!(["cleanUpZookeeperPVC"]));
    let claim = |n: u32| {
        let kind = phased::KindRef::of::<k8s_openapi::api::core::v1::PersistentVolumeClaim>(true);
        phased::ObjectId::new(kind, "default", format!("data-zk-{n}"))
    };
    for (n, uid) in [(0, "uid-root"), (1, "uid-root"), (2, "uid-of-another")] {
        let labels = json!({"app": "zk", "uid": uid});
        world.store(&claim(n), json!({"metadata": {"labels": labels}}));
    }
    world.delete_root();
    let mut kept = world.clone();
    for _ in 0..10 {
        world.pass();
        if world.stored.objects.remove(&world.names().stateful_set()).is_none() {
            (0..3).for_each(|n| world.lose_pod(n));
        }
        if world.gone {
            break;
        }
    }
    assert!(world.gone);
    assert!(!world.objects.contains_key(&claim(0)) && !world.objects.contains_key(&claim(1)));
    assert!(world.objects.contains_key(&claim(2)), "a namesake's volume stays (ZK-04)");
    assert!(!world.writes.iter().any(|w| w.starts_with("apply")), "ZK-06: {:?}", world.writes);
    kept.pass();
    kept.edit(|root| root["spec"]["persistence"] = json!({"reclaimPolicy": "Retain"}));
    kept.pass();
    assert!(kept.gone && kept.objects.contains_key(&claim(0)));
}

/// What the server refuses is told, and tried again.
#[test]
fn a_refused_write_is_told() {
    let mut world = World::of(three());
    let id = world.names().config_map();
    let fate = Fate::UserMustAct;
    let trouble = Trouble { fate, reason: "Forbidden".into(), message: "not permitted".into() };
    world.refuses.insert(id.clone(), trouble);
    world.wait(60);
    assert_eq!(world.condition("Ready").1, "WriteRefused");
    assert!(!world.objects.contains_key(&world.names().stateful_set()));
    world.refuses.clear();
    world.settle();
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}

/// The end of a history, without what a repetition changes.
fn end(world: &World) -> serde_json::Value {
    let mut objects = serde_json::Map::new();
    for (id, object) in &world.stored.objects {
        let mut object = object.clone();
        for field in ["uid", "resourceVersion", "generation", "ownerReferences"] {
            object["metadata"][field] = json!(null);
        }
        object["status"]["observedGeneration"] = json!(null);
        objects.insert(id.to_string(), object);
    }
    let mut status = world.root["status"].clone();
    status["phaseSince"] = json!(null);
    for condition in status["conditions"].as_array_mut().unwrap() {
        condition["lastTransitionTime"] = json!(null);
        condition["lastUpdateTime"] = json!(null);
    }
    json!([objects, status, world.servers.nodes[RECORD].0, world.servers.voters])
}

/// A crash before or after any write, of the API or of ZooKeeper, leads to the same end.
#[test]
fn a_crash_at_every_write_leads_to_the_same_end() {
    let history = |world: &mut World| {
        world.settle();
        world.edit(|root| root["spec"]["replicas"] = json!(5));
        world.settle();
        world.edit(|root| root["spec"]["image"] = json!({"tag": "0.2.16"}));
        world.settle();
        world.edit(|root| root["spec"]["replicas"] = json!(1));
        world.settle();
    };
    let mut plain = World::of(three());
    history(&mut plain);
    assert_eq!(plain.story(), "Ready/True/AllChecksPassed", "{}", plain.root["status"]);
    let expected = end(&plain);
    for at in 0..plain.writes.len() {
        for before in [true, false] {
            let mut world = World::of(three());
            world.stored.crash_at = Some((at, before));
            history(&mut world);
            assert_eq!(end(&world), expected, "crash {before} at {at}: {:?}", world.writes);
        }
    }
}
