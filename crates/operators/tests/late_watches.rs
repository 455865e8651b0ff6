//! What the watches do not show yet is neither absent nor ready.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::World;
use serde_json::json;

/// A set is not made anew for another size when its claim exists and is only not shown.
#[test]
fn an_unseen_claim_still_is_a_volume() {
    let mut world = World::new();
    let names = world.names();
    while !world.objects.contains_key(&names.stateful_set()) {
        world.pass();
    }
    world.unseen.extend([names.data_claim(), names.primary_pod()]);
    world.stall(json!({}));
    let uid = world.live(&names.stateful_set()).unwrap().uid().to_owned();
    world.edit(|root| root["spec"]["storage"]["size"] = json!("1Gi"));
    for _ in 0..10 {
        world.pass();
    }
    assert_eq!(world.live(&names.stateful_set()).unwrap().uid(), uid);
    assert!(!world.writes.iter().any(|w| w.starts_with("delete")), "{:?}", world.writes);
}

/// Nor when the claim could not be read.
#[test]
fn an_unreadable_claim_still_may_be_a_volume() {
    let mut world = World::new();
    let names = world.names();
    while !world.objects.contains_key(&names.stateful_set()) {
        world.pass();
    }
    world.unreadable.insert(
        names.data_claim(),
        phased::Trouble {
            fate: phased::fact::Fate::WorldMayHeal,
            reason: "Timeout".to_owned(),
            message: "slow".to_owned(),
        },
    );
    world.edit(|root| root["spec"]["storage"]["size"] = json!("1Gi"));
    for _ in 0..10 {
        world.pass();
    }
    assert!(!world.writes.iter().any(|w| w.starts_with("delete")), "{:?}", world.writes);
}

/// A set that counts its pod as ready is not believed before the pod itself was looked at.
#[test]
fn an_unseen_pod_is_not_a_ready_one() {
    let mut world = World::ready();
    let pod = world.names().primary_pod();
    world.unseen.insert(pod.clone());
    world.settle();
    assert_eq!(world.phase(), "Ready", "it was read, and it is ready");
    world.meddle(&pod, |p| p["status"]["conditions"][0]["status"] = json!("False"));
    world.settle();
    assert_eq!(world.story(), "Deploying/False/RolloutWaiting");
    world.objects.remove(&pod);
    world.settle();
    assert_eq!(world.story(), "Deploying/False/RolloutWaiting");
    assert!(world.condition("Ready").2.contains("does not exist"));
}
