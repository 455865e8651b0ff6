//! Deletion: in every phase, past every gate, and only of what is ours.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::World;
use phased::fact::Fate;
use phased::{ObjectId, Trouble};
use serde_json::json;

fn trouble(fate: Fate, reason: &str, message: &str) -> Trouble {
    Trouble { fate, reason: reason.to_owned(), message: message.to_owned() }
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
                let kinds = ["Secret", "Claim", "StatefulSet"];
                assert!(gone.iter().all(|g| kinds.iter().any(|k| g.contains(k))), "{gone:?}");
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
    world.pass();
    assert!(!world.gone);
    let (_, reason, message) = world.condition("Ready");
    assert_eq!(reason, "Deleting");
    assert!(message.contains("no delete for you"), "{message}");
    world.refuses.clear();
    world.settle();
    assert!(world.gone);
}

/// A claim goes only when nothing is left that would make it again or still mounts it.
#[test]
fn volumes_go_after_the_servers() {
    let mut world = World::ready();
    let names = world.names();
    world.pods_linger = true;
    world.delete_root("Delete");
    world.settle();
    assert_eq!(deletes(&world), [names.stateful_set().to_string()]);
    assert!(!world.gone);
    assert!(world.condition("Ready").2.contains("must be gone"), "{}", world.condition("Ready").2);
    world.objects.remove(&names.primary_pod());
    world.settle();
    assert!(world.gone);
    assert!(!world.objects.contains_key(&names.data_claim()));
    assert!(!world.objects.contains_key(&names.superuser_secret()));
}

/// The same when the watches are late: the set is read before its absence counts.
#[test]
fn an_unseen_set_is_read_before_volumes_go() {
    let mut world = World::ready();
    let names = world.names();
    world.unseen.extend([names.stateful_set(), names.primary_pod()]);
    world.delete_root("Delete");
    world.pass();
    assert_eq!(deletes(&world), [names.stateful_set().to_string()]);
    world.settle();
    assert!(world.gone);
}
