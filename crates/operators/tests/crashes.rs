//! The operator ends before and after every write, and the end is the same.
//!
//! A plan has no memory but what is stored, so a crash is a pass that stops half way.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::{World, seed};
use serde_json::{Value, json};

/// What a history changes before it settles again.
type Change = fn(&mut World);

const HISTORIES: [(&str, Change); 5] = [
    ("bring-up", |_| {}),
    ("new settings", |world| {
        world.edit(|root| root["spec"]["parameters"] = json!({"work_mem": "64MB"}));
    }),
    ("new password", |world| world.write_password("another-password-1")),
    ("lost credentials", |world| {
        let id = world.names().credentials_secret();
        world.objects.remove(&id);
    }),
    ("lost children", |world| {
        let names = world.names();
        world.objects.remove(&names.client_service());
        world.objects.remove(&names.config_map());
        world.objects.remove(&names.stateful_set());
    }),
];

fn start(name: &str, change: Change) -> World {
    let mut world = if name == "bring-up" { World::new() } else { World::ready() };
    change(&mut world);
    world.writes.clear();
    world
}

/// The end state without what differs from run to run: versions, uids, generated values.
fn end(world: &World) -> Value {
    let mut objects: Vec<Value> = Vec::new();
    for (id, object) in &world.objects {
        let mut object = object.clone();
        let metadata = object["metadata"].as_object_mut().unwrap();
        for field in ["uid", "resourceVersion", "generation"] {
            metadata.remove(field);
        }
        if id.kind.kind == "Secret" {
            object["data"] = json!(object["data"].as_object().unwrap().keys().collect::<Vec<_>>());
        }
        object.as_object_mut().unwrap().remove("status");
        objects.push(object);
    }
    json!({
        "objects": objects,
        "phase": world.phase(),
        "databases": world.server.databases,
        "roles": world.server.roles.keys().collect::<Vec<_>>(),
    })
}

fn agree(world: &World) {
    let id = world.names().credentials_secret();
    assert_eq!(world.server.roles["admin"], world.secret(&id, "password"));
}

#[test]
fn a_crash_at_every_write_leads_to_the_same_end() {
    let mut cases = 0;
    for (name, change) in HISTORIES {
        let mut plain = start(name, change);
        plain.settle_rolling();
        assert_eq!(plain.phase(), "Ready");
        let writes = plain.writes.len();
        for at in 0..writes {
            for before in [true, false] {
                let mut world = start(name, change);
                world.crash_at = Some((at, before));
                world.settle_rolling();
                world.crash_at = None;
                world.settle_rolling();
                assert_eq!(end(&world), end(&plain), "{name}, write {at}, before: {before}");
                agree(&world);
                cases += 1;
            }
        }
    }
    assert!(cases >= 60, "only {cases} cases");
}

#[test]
fn a_crash_at_every_write_of_a_deletion_ends_it() {
    for policy in ["Retain", "Delete"] {
        let mut plain = World::ready();
        plain.delete_root(policy);
        plain.settle();
        assert!(plain.gone);
        for at in 0..plain.writes.len() {
            for before in [true, false] {
                let mut world = World::ready();
                world.delete_root(policy);
                world.crash_at = Some((at, before));
                world.settle();
                world.crash_at = None;
                world.settle();
                assert!(world.gone, "{policy}, write {at}, before: {before}");
                assert_eq!(end(&world)["objects"], end(&plain)["objects"]);
            }
        }
    }
}

/// Volume and Secrets kept, the resource made again under its name: the new password is put in
/// force on the old data (PG-06, G-43).
#[test]
fn pg_06_a_new_database_takes_the_kept_volume() {
    let mut world = World::ready();
    world.delete_root("Retain");
    world.settle();
    assert!(world.gone);
    let owned = world.objects.clone();
    let mut root = seed();
    root["metadata"] = json!({"name": "test-db", "namespace": "default", "uid": "uid-second",
        "resourceVersion": "700", "generation": 1});
    world.root = root;
    for _ in 0..6 {
        world.pass();
    }
    assert_eq!(world.story(), "Provisioning/False/ChildTerminating", "the collector is late");
    world.objects.retain(|_, o| o["metadata"].get("ownerReferences").is_none());
    assert!(world.objects.len() < owned.len());
    world.stored.objects.remove(&world.names().primary_pod());
    world.bring_up();
    agree(&world);
    assert!(!world.writes.iter().any(|w| w.contains("create-database")), "the data were there");
    let claim = &world.objects[&world.names().data_claim()];
    assert_eq!(claim["metadata"]["annotations"]["steadfast.dev/resource-uid"], "uid-second");
}
