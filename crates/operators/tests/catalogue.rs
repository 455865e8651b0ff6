//! Rows of the fault catalogue that need a history of their own, each test named after its row.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::{World, seed};
use serde_json::json;

/// A second edit arrives between the change of the role and its check (PG-07).
#[test]
fn pg_07_a_second_edit_of_the_password_wins() {
    let mut world = World::ready();
    world.write_password("the-first-edit");
    world.pass();
    assert_eq!(world.story(), "Verifying/False/PreparingDatabase");
    world.write_password("the-second-edit");
    world.settle();
    assert_eq!(world.phase(), "Ready");
    assert_eq!(world.server.roles["admin"], "the-second-edit");
    let uri = world.secret(&world.names().credentials_secret(), "uri");
    assert!(uri.contains("the-second-edit"));
}

/// No plan, status, Event or note ever holds a password: the lint looks at every plan of this
/// history for every password that exists (PG-10).
#[test]
fn pg_10_passwords_stay_in_their_secrets() {
    let mut world = World::new();
    world.bring_up();
    world.write_password("Planted-Marker-1");
    world.settle();
    world.server.refuses_changes = Some("42501".to_owned());
    world.write_password("Planted-Marker-2");
    world.settle();
    assert_eq!(world.story(), "Failed/False/ActionFailed");
    let told = format!("{} {:?}", world.root, world.writes);
    assert!(!told.contains("Planted-Marker"));
}

/// An image that ignores arguments and files runs a server without our settings (PG-34).
#[test]
fn pg_34_an_image_that_breaks_the_contract() {
    let mut world = World::new();
    while world.phase() != "Verifying" {
        world.pass();
        world.roll_out();
    }
    world.server.identity = None;
    world.server.config = None;
    world.settle();
    assert_eq!(world.story(), "Failed/False/WrongServer");
    assert!(world.condition("Ready").2.contains("configuration"));
    world.edit(|root| root["spec"]["image"] = json!("postgres:14.13"));
    world.settle_rolling();
    assert_eq!(world.phase(), "Ready", "a good image heals");
}

/// An image without the server's program never starts: its last words are told (PG-34).
#[test]
fn pg_34_an_image_without_the_program() {
    let mut world = World::new();
    while !world.objects.contains_key(&world.names().client_service()) {
        world.pass();
    }
    world.stall(json!({"containerStatuses": [{"name": "postgres", "image": "busybox",
        "imageID": "", "ready": false, "restartCount": 1,
        "state": {"terminated": {"exitCode": 127, "message": "exec: postgres: not found"}}}]}));
    for _ in 0..3 {
        world.pass();
    }
    assert_eq!(world.story(), "Deploying/False/ContainerCrashing");
    assert!(world.condition("Ready").2.contains("code 127: exec: postgres: not found"));
}

/// Attempts and delays survive any restart, since they are in the status; an edit starts at once
/// and counts anew (PG-38).
#[test]
fn pg_38_retries_are_counted_in_the_status() {
    let mut world = World::ready();
    world.server.refuses_changes = Some("42501".to_owned());
    world.write_password("another-password");
    world.settle();
    let attempts = |w: &World| w.root["status"]["retry"]["attempts"].as_i64().unwrap();
    for expected in [1, 2, 3] {
        assert_eq!(attempts(&world), expected);
        let next: jiff::Timestamp =
            world.root["status"]["retry"]["nextTry"].as_str().unwrap().parse().unwrap();
        world.now = next.checked_sub(jiff::SignedDuration::from_secs(1)).unwrap();
        world.settle();
        assert_eq!(attempts(&world), expected, "not before its time");
        world.now = next;
        world.pass();
    }
    world.edit(|root| root["spec"]["progressDeadlineSeconds"] = json!(700));
    world.settle();
    assert_eq!(attempts(&world), 1);
}

/// While the collector takes owned objects in a foreground deletion, none is made again (PG-43).
#[test]
fn pg_43_nothing_is_made_during_a_foreground_deletion() {
    let mut world = World::ready();
    let finalizers = world.root["metadata"]["finalizers"].as_array_mut().unwrap();
    finalizers.push(json!("foregroundDeletion"));
    world.delete_root("Retain");
    let names = world.names();
    for id in [names.client_service(), names.config_map(), names.stateful_set()] {
        world.objects.remove(&id);
        world.pass();
        assert!(!world.objects.contains_key(&id), "{id}");
    }
    assert_eq!(world.root["metadata"]["finalizers"], json!(["foregroundDeletion"]));
}

/// A child's name that another Database of the suite uses: the later one waits with its name, does
/// not write, and goes on when the first is gone (PG-45).
#[test]
fn pg_45_names_of_two_databases_collide() {
    let mut root = seed();
    root["metadata"]["name"] = json!("a-headless");
    let mut world = World::of(root);
    let id = world.names().client_service();
    world.store(
        &id,
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {
            "labels": operators::database::labels::child("a"),
            "ownerReferences": [{"apiVersion": "database.example.com/v1", "kind": "Database",
                "name": "a", "uid": "uid-a", "controller": true}]}}),
    );
    let before = world.objects[&id].clone();
    for _ in 0..20 {
        world.pass();
        world.roll_out();
    }
    assert_eq!(world.story(), "Configuring/False/NameConflict");
    assert!(world.condition("Ready").2.contains("Database a"));
    assert_eq!(world.objects[&id], before);
    world.objects.remove(&id);
    world.settle_rolling();
    assert_eq!(world.phase(), "Ready");
}

/// A claim that is marked for deletion goes with its pod: told while there is time.
#[test]
fn a_volume_that_is_to_go_is_told() {
    let mut world = World::ready();
    let id = world.names().data_claim();
    world.meddle(&id, |c| c["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    world.settle();
    assert_eq!(world.condition("Ready").0, "True");
    assert_eq!(world.condition("Degraded").1, "VolumeTerminating");
}

/// Fields that are removed from the spec leave the children (G-51), and the same spec reached by
/// two ways is the same end (G-52).
#[test]
fn g_51_removed_fields_leave_the_children() {
    let mut world = World::ready();
    let before = world.objects[&world.names().stateful_set()]["spec"]["template"].clone();
    world.edit(|root| root["spec"]["parameters"] = json!({"work_mem": "64MB"}));
    world.settle_rolling();
    assert_ne!(world.objects[&world.names().stateful_set()]["spec"]["template"], before);
    world.edit(|root| {
        root["spec"].as_object_mut().unwrap().remove("parameters");
    });
    world.settle_rolling();
    assert_eq!(world.objects[&world.names().stateful_set()]["spec"]["template"], before);
    let conf = &world.objects[&world.names().config_map()]["data"]["postgresql.conf"];
    assert!(!conf.as_str().unwrap().contains("work_mem"));
}

/// Hostile texts in every field that takes free text: data stay data (G-53).
#[test]
fn g_53_hostile_settings_stay_settings() {
    let hostile = "off'\ninclude = '/etc/passwd\\' # $(id) `id` {{x}} --- &a *b \u{202e}";
    let mut world = World::ready();
    world.edit(|root| root["spec"]["parameters"] = json!({"application_name": hostile}));
    world.settle_rolling();
    let conf = &world.objects[&world.names().config_map()]["data"]["postgresql.conf"];
    let lines: Vec<&str> = conf.as_str().unwrap().lines().collect();
    let ours = lines.iter().filter(|l| l.starts_with("application_name = '")).count();
    assert_eq!(ours, 1);
    assert!(lines.iter().all(|l| l.starts_with('#') || l.contains(" = '") && l.ends_with('\'')));
    let includes: Vec<&&str> = lines.iter().filter(|l| l.starts_with("include")).collect();
    assert_eq!(includes, [&"include_if_exists = '/tmp/standby.conf'"], "the guard's, and no other");
}
