//! Standbys in the small world: bring-up, more and fewer of them, what they lack, and what is done
//! about it (docs/design/0002-standbys.md; reference/database.md section 4).

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::cluster::three;
use check::server::Standby;
use check::{World, seed};
use serde_json::{Value, json};

fn scale(world: &mut World, replicas: i64) {
    world.edit(|root| root["spec"]["replicas"] = json!(replicas));
}

fn role(world: &World, ordinal: u32) -> Value {
    let pod = &world.objects[&world.names().pod(ordinal)];
    pod["metadata"]["labels"]["steadfast.dev/role"].clone()
}

fn standby(world: &mut World, ordinal: u32) -> &mut Standby {
    world.server.standbys.get_mut(&ordinal).unwrap()
}

/// Passes until `Degraded` is as wanted, without the StatefulSet controller.
fn degraded(world: &mut World) -> String {
    world.settle();
    let (status, reason, message) = world.condition("Degraded");
    format!("{status} {reason}: {message}")
}

#[test]
fn three_servers_are_one_primary_and_two_standbys_that_stream() {
    let world = three();
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    assert_eq!(world.condition("Degraded").0, "False");
    assert_eq!(world.condition("Progressing").1, "ReconciliationComplete");
    assert_eq!(world.root["status"]["replicaSummary"], "3/3");
    assert_eq!(world.root["status"]["primary"], "test-db-0");
    assert_eq!([0, 1, 2].map(|n| role(&world, n)), ["primary", "standby", "standby"]);
    let selector = |id| world.objects[&id]["spec"]["selector"]["steadfast.dev/role"].clone();
    assert_eq!(selector(world.names().client_service()), "primary");
    assert_eq!(selector(world.names().read_only_service()), "standby");
    assert_eq!(world.objects[&world.names().budget()]["spec"]["maxUnavailable"], 1);
    let reserved = Some("reserved".to_owned());
    assert_eq!(world.server.slots, [(1, reserved.clone()), (2, reserved)].into());
    assert_eq!(world.server.copies, 2);
}

/// The table of section 4: Ready speaks of the primary.
#[test]
fn a_first_bring_up_waits_for_its_standbys_but_not_for_ever() {
    let mut root = seed();
    root["spec"]["replicas"] = json!(3);
    let mut world = World::of(root);
    for _ in 0..20 {
        world.pass();
        world.roll_out();
        world.meddle_if(
            |world| world.names().pod(2),
            |pod| {
                pod["status"]["conditions"][0]["status"] = json!("False");
            },
        );
        world.server.standbys.remove(&2);
    }
    assert_eq!(world.story(), "Verifying/False/StandbyUnavailable");
    assert_eq!(world.condition("Degraded").1, "NotYetServing");
    assert!(world.condition("Ready").2.contains("pod test-db-2 is not ready"));
    world.advance(601);
    world.settle();
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    assert!(degraded(&mut world).starts_with("True StandbyUnavailable: pod test-db-2"));
}

#[test]
fn a_settled_primary_with_standbys_is_not_written() {
    let mut world = three();
    for _ in 0..100 {
        world.advance(300);
        world.pass();
    }
    assert_eq!(world.writes, [] as [&str; 0]);
}

/// One to three and back: the primary is neither restarted nor less than Ready for a moment.
#[test]
fn more_and_fewer_servers_leave_the_primary_alone() {
    let mut world = World::ready();
    let uid = world.objects[&world.names().primary_pod()]["metadata"]["uid"].clone();
    for replicas in [3, 1, 2, 3, 1] {
        scale(&mut world, replicas);
        for _ in 0..30 {
            world.pass();
            assert_eq!(world.story(), "Ready/True/AllChecksPassed", "{replicas}");
            world.roll_out();
        }
        let set = &world.objects[&world.names().stateful_set()];
        assert_eq!(set["spec"]["replicas"], replicas);
        assert_eq!(world.condition("Degraded").0, "False", "{:?}", world.condition("Degraded"));
        assert_eq!(world.server.slots.len() as i64, replicas - 1, "slots follow");
        let several = replicas > 1;
        assert_eq!(world.objects.contains_key(&world.names().read_only_service()), several);
        assert_eq!(world.objects.contains_key(&world.names().budget()), several);
        let selector = &world.objects[&world.names().client_service()]["spec"]["selector"];
        assert_eq!(selector.get("steadfast.dev/role").is_some(), several);
        let pod = &world.objects[&world.names().primary_pod()];
        assert_eq!(pod["metadata"]["uid"], uid);
    }
    assert!(world.objects.contains_key(&world.names().claim(2)), "volumes stay with Retain");
}

/// No standby is added while the client Service would lead to it.
#[test]
fn standbys_come_after_the_service_that_tells_roles_apart() {
    let mut world = World::ready();
    scale(&mut world, 3);
    world.settle_rolling();
    let place = |what: &str| world.writes.iter().position(|w| w == what).unwrap();
    let service = place("apply Service default/test-db");
    assert!(service < place("apply StatefulSet default/test-db"), "{:?}", world.writes);
}

#[test]
fn volumes_of_removed_standbys_go_where_the_policy_says_so() {
    let mut world = three();
    world.edit(|root| root["spec"]["deletionPolicy"] = json!("Delete"));
    scale(&mut world, 1);
    world.settle_rolling();
    let claims = [0, 1, 2].map(|n| world.objects.contains_key(&world.names().claim(n)));
    assert_eq!(claims, [true, false, false]);
    assert_eq!(world.phase(), "Ready");
}

/// Rows 2 to 4 of the table of section 4.
#[test]
fn what_standbys_lack_is_degraded_and_what_the_primary_lacks_is_not_ready() {
    let mut world = three();
    standby(&mut world, 1).streams = false;
    assert_eq!(degraded(&mut world), "True StandbyUnavailable: test-db-1 does not stream");
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    standby(&mut world, 1).streams = true;
    assert!(degraded(&mut world).starts_with("False"));
    standby(&mut world, 2).promoted = true;
    assert!(degraded(&mut world).contains("test-db-2 follows no primary: it was promoted"));
    standby(&mut world, 2).promoted = false;
    standby(&mut world, 2).paused = true;
    assert!(degraded(&mut world).contains("test-db-2: its replay is paused"));
    standby(&mut world, 2).paused = false;
    world.server.slots.insert(2, Some("unreserved".to_owned()));
    assert!(degraded(&mut world).contains("test-db-2 lags"));
    world.server.up = false;
    world.settle();
    assert_eq!(world.condition("Ready").0, "False");
    assert_eq!(world.condition("Degraded").1, "PrimaryUnavailable");
    assert!(!world.writes.iter().any(|w| w.starts_with("delete")), "nothing is replaced");
}

/// The causes of a pod that is not there stand in the resource's own condition (PG-25, C-05).
#[test]
fn the_condition_names_the_standby_and_its_cause() {
    let mut world = three();
    let id = world.names().pod(2);
    world.meddle(&id, |pod| {
        pod["status"] = json!({
            "conditions": [{"type": "Ready", "status": "False"}],
            "initContainerStatuses": [{
                "name": "guard", "ready": false, "restartCount": 1, "image": "", "imageID": "",
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 1, "message":
                    "copying from the primary: the volume is empty\nStandbyCopyFailed: \
                     pg_basebackup: error: connection to server at \"test-db-0\" (10.0.0.9), \
                     port 5432 failed: Connection refused\n"}},
            }],
        });
    });
    world.server.standbys.remove(&2);
    let told = degraded(&mut world);
    for words in ["StandbyUnavailable", "test-db-2", "10.0.0.9", "Connection refused"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(world.phase(), "Ready");
    world.objects.remove(&id);
    assert!(degraded(&mut world).contains("pod test-db-2 does not exist"));
}

/// A slot that the primary gave up: the request first, then the slot, then the pod.
#[test]
fn a_standby_beyond_help_is_seeded_anew() {
    let mut world = three();
    let pod = world.objects[&world.names().pod(2)]["metadata"]["uid"].clone();
    world.server.slots.insert(2, Some("lost".to_owned()));
    standby(&mut world, 2).streams = false;
    let copies = world.server.copies;
    world.settle_rolling();
    assert_eq!(
        world.writes.iter().filter(|w| !w.starts_with("status")).take(4).collect::<Vec<_>>(),
        [
            "apply ConfigMap default/test-db-config",
            "act drop-slot",
            "act create-slot",
            "delete Pod default/test-db-2",
        ]
    );
    assert_eq!(world.server.copies, copies + 1);
    assert_eq!(world.objects[&world.names().config_map()]["data"]["reseed-2"], pod);
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    assert!(degraded(&mut world).starts_with("False"));
}

#[test]
fn a_crash_at_every_write_of_seeding_anew_leads_to_one_copy() {
    let lost = || {
        let mut world = three();
        world.server.slots.insert(2, Some("lost".to_owned()));
        standby(&mut world, 2).streams = false;
        world
    };
    let mut plain = lost();
    plain.settle_rolling();
    for at in 0..plain.writes.len() {
        for before in [true, false] {
            let mut world = lost();
            world.crash_at = Some((at, before));
            world.settle_rolling();
            world.settle_rolling();
            assert_eq!(world.server.copies, plain.server.copies, "write {at}, before: {before}");
            assert!(degraded(&mut world).starts_with("False"), "write {at}, before: {before}");
        }
    }
}

/// A standby of another database is proof enough to let its guard look again.
#[test]
fn a_standby_of_another_database_is_restarted() {
    let mut world = three();
    standby(&mut world, 1).identifier = "6000000000000000006".to_owned();
    standby(&mut world, 1).streams = false;
    world.pass();
    assert!(world.writes.contains(&"delete Pod default/test-db-1".to_owned()));
    world.settle_rolling();
    assert_eq!(world.server.standbys[&1].identifier, world.server.identifier);
    assert!(degraded(&mut world).starts_with("False"));
}

/// Settings that were lowered: a standby follows when the primary runs with them, one at a time.
#[test]
fn raised_settings_are_given_up_one_standby_at_a_time() {
    let mut world = three();
    standby(&mut world, 1).raised = true;
    standby(&mut world, 2).raised = true;
    world.pass();
    let deleted = |world: &World| world.writes.iter().filter(|w| w.starts_with("delete")).count();
    assert_eq!(deleted(&world), 1, "{:?}", world.writes);
    world.server.standbys.remove(&2);
    world.settle();
    assert_eq!(deleted(&world), 1, "the other one waits for it");
    world.settle_rolling();
    assert_eq!(deleted(&world), 2);
    assert!(world.server.standbys.values().all(|s| !s.raised && s.streams));
}

/// The password of replication, edited by a person: the role follows, and standbys that cannot log
/// in any more are restarted, since their guard hands the password over.
#[test]
fn an_edited_replication_password_is_put_in_force() {
    let mut world = three();
    let id = world.names().replication_secret();
    world.meddle(&id, |secret| {
        use base64::Engine;
        let encoded = base64::engine::general_purpose::STANDARD.encode("a:nother\\password");
        secret["data"]["password"] = json!(encoded);
        secret["metadata"]["managedFields"] = json!([{"manager": "kubectl-edit",
            "operation": "Update", "time": "2026-02-01T00:00:00Z",
            "fieldsV1": {"f:data": {"f:password": {}}}}]);
    });
    for ordinal in [1, 2] {
        let pod = world.names().pod(ordinal);
        world.meddle(&pod, |pod| {
            pod["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        });
    }
    world.settle();
    assert_eq!(world.server.roles["steadfast_replication"], "a:nother\\password");
    assert!(!world.writes.iter().any(|w| w.starts_with("delete")), "they stream on");
    standby(&mut world, 1).streams = false;
    world.settle();
    let deleted: Vec<&String> = world.writes.iter().filter(|w| w.starts_with("delete")).collect();
    assert_eq!(deleted, ["delete Pod default/test-db-1"]);
}

/// A refused slot is told of, and the primary stays Ready.
#[test]
fn trouble_with_a_slot_is_not_trouble_of_the_primary() {
    let mut world = three();
    world.server.slots.remove(&2);
    world.server.refuses_changes = Some("53400".to_owned());
    for _ in 0..10 {
        world.pass();
        assert_eq!(world.story(), "Ready/True/AllChecksPassed");
        assert!(world.condition("Degraded").2.contains("53400"));
    }
    world.server.refuses_changes = None;
    world.advance(10);
    world.settle_rolling();
    assert!(world.server.slots.contains_key(&2));
}

/// Settings that leave nothing for standbys are refused with their path.
#[test]
fn settings_that_cannot_carry_standbys_are_refused() {
    for (name, value, replicas) in [
        ("wal_level", "minimal", 2),
        ("max_wal_senders", "3", 3),
        ("max_replication_slots", "1", 3),
        ("max_connections", "0100", 1),
        ("max_worker_processes", "many", 1),
    ] {
        let mut root = seed();
        root["spec"]["replicas"] = json!(replicas);
        root["spec"]["parameters"] = json!({name: value});
        let mut world = World::of(root);
        world.settle();
        assert_eq!(world.story(), "Pending/False/InvalidSpec", "{name}");
        assert!(world.condition("Ready").2.contains(&format!("spec.parameters[{name:?}]")));
    }
}

/// A label that an admission webhook changes on its way is not sent again and again (G-28).
#[test]
fn g_28_a_label_that_is_not_kept_is_not_sent_again() {
    let mut world = three();
    let id = world.names().pod(1);
    world.meddle(&id, |pod| {
        pod["metadata"]["labels"]["app.kubernetes.io/component"] = json!("theirs");
        pod["metadata"]["managedFields"] = json!([{
            "manager": operators::database::MANAGER, "operation": "Apply", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:app.kubernetes.io/component": {}}}},
        }]);
    });
    world.writes.clear();
    world.settle();
    assert!(world.writes.is_empty(), "{:?}", world.writes);
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}
