//! Objects of other owners, and reads that fail.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::World;
use serde_json::json;

/// What a live read finds although no watch shows it is never created over (G-36).
#[test]
fn g_36_foreign_objects_of_our_names_are_left_alone() {
    let names = World::new().names();
    let ids = [
        names.stateful_set(),
        names.client_service(),
        names.headless_service(),
        names.config_map(),
        names.superuser_secret(),
        names.replication_secret(),
    ];
    for id in ids {
        for owner in [
            None,
            Some(json!([{"kind": "Other", "name": "o", "uid": "x",
            "apiVersion": "v1", "controller": true}])),
        ] {
            let mut world = World::new();
            let mut foreign = json!({"apiVersion": id.kind.api_version(), "kind": id.kind.kind,
                "metadata": {}});
            if let Some(owner) = &owner {
                foreign["metadata"]["ownerReferences"] = owner.clone();
            }
            world.store(&id, foreign);
            let before = world.objects[&id].clone();
            for _ in 0..20 {
                world.pass();
                world.roll_out_if_ours();
            }
            let (ready, reason, message) = world.condition("Ready");
            assert_eq!((ready.as_str(), reason.as_str()), ("False", "NameConflict"), "{id}");
            assert!(message.contains(&id.to_string()), "{message}");
            // What may be our own is handed over before anybody thinks of removing it.
            let label = message.find("app.kubernetes.io/instance=test-db");
            assert!(label < message.find("remove it") && label.is_some(), "{message}");
            assert_eq!(world.objects[&id], before, "{id}");
            world.objects.remove(&id);
            world.settle_rolling();
            assert_eq!(world.phase(), "Ready", "{id} is free again");
        }
    }
}

impl World {
    fn roll_out_if_ours(&mut self) {
        let set = self.objects.get(&self.names().stateful_set());
        if set.is_some_and(|s| s["spec"].get("template").is_some()) {
            self.roll_out();
        }
    }
}

/// A read that fails is not absence: nothing is made on the strength of it (G-82, PG-05).
#[test]
fn g_82_a_failed_read_creates_nothing() {
    let mut world = World::ready();
    let id = world.names().credentials_secret();
    let kept = world.objects.remove(&id).unwrap();
    let trouble = phased::Trouble {
        fate: phased::fact::Fate::WorldMayHeal,
        reason: "Timeout".to_owned(),
        message: "timed out".to_owned(),
    };
    world.unreadable.insert(id.clone(), trouble);
    world.settle();
    assert_eq!(world.condition("Ready").1, "ReadFailed");
    assert!(!world.writes.iter().any(|w| w.starts_with("create")), "{:?}", world.writes);
    world.objects.insert(id.clone(), kept.clone());
    world.unreadable.clear();
    world.settle_rolling();
    assert_eq!(world.phase(), "Ready");
    assert_eq!(world.objects[&id], kept);
}
