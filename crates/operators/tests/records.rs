//! What other hands do to the places where facts about the data are written down, and to the fields
//! that look like them: taken back, never adopted (issue 2; design.md section 2, "Children").

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::World;
use phased::ObjectId;
use serde_json::{Value, json};

/// A change by `kubectl`, which becomes the field's holder, as the API server records it.
fn by_kubectl(world: &mut World, id: &ObjectId, path: &[&str], value: &str) {
    world.meddle(id, |object| {
        let mut fields = json!({});
        let mut held = &mut fields;
        for name in path {
            held[format!("f:{name}")] = json!({});
            held = &mut held[format!("f:{name}")];
        }
        let pointer = path.iter().map(|name| format!("/{}", name.replace('/', "~1")));
        *object.pointer_mut(&pointer.collect::<String>()).unwrap() = json!(value);
        object["metadata"]["managedFields"] = json!([
            {"manager": "kubectl-edit", "operation": "Update", "apiVersion": "v1",
             "fieldsType": "FieldsV1", "fieldsV1": fields, "time": "2026-01-01T00:00:00Z"},
            {"manager": operators::database::MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:metadata": {"f:labels": {}}}, "time": "2026-01-01T00:00:00Z"}]);
    });
}

fn without_bookkeeping(object: &Value) -> Value {
    let mut object = object.clone();
    for key in ["managedFields", "resourceVersion", "generation"] {
        object["metadata"].as_object_mut().unwrap().remove(key);
    }
    object
}

/// Every image that somebody sets on the child is taken back, an older or newer major version
/// included: nothing but the spec's own words is ever refused.
#[test]
fn an_image_set_on_the_child_is_taken_back() {
    for image in ["postgres:17", "postgres:15", "postgres:14.1", "registry.example.com/pg:latest"] {
        let mut world = World::ready();
        let id = world.names().stateful_set();
        let before = without_bookkeeping(&world.objects[&id]);
        world.meddle(&id, |set| {
            set["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        });
        let plan = world.pass();
        assert!(plan.events.iter().any(|e| e.reason == "EditReverted"), "{:?}", plan.events);
        world.settle_rolling();
        assert_eq!(world.story(), "Ready/True/AllChecksPassed", "{image}");
        let after = without_bookkeeping(&world.objects[&id]);
        assert_eq!(before["metadata"]["annotations"], after["metadata"]["annotations"]);
        assert_eq!(before["spec"], after["spec"], "{image}");
    }
}

/// One copy in other hands is no record, whichever it is.
#[test]
fn a_record_that_somebody_edits_is_taken_back() {
    let names = World::ready().names();
    let set = names.stateful_set();
    let config = names.config_map();
    let annotated = |name: &'static str| (set.clone(), vec!["metadata", "annotations", name]);
    let claimed = |name: &'static str| (names.data_claim(), vec!["metadata", "annotations", name]);
    let keyed = |name: &'static str| (config.clone(), vec!["data", name]);
    let places = [
        (annotated("steadfast.dev/database"), "other"),
        (annotated("steadfast.dev/username"), "other"),
        (annotated("steadfast.dev/identity"), "other"),
        (annotated("steadfast.dev/image"), "postgres:17"),
        (claimed("steadfast.dev/database"), "other"),
        (claimed("steadfast.dev/username"), "other"),
        (claimed("steadfast.dev/resource-uid"), "other"),
        (keyed("database"), "other"),
        (keyed("username"), "other"),
        (keyed("identity"), "other"),
        (keyed("image"), "postgres:17"),
        (keyed("system-identifier"), "7999999999999999999"),
    ];
    for ((id, path), value) in places {
        let mut world = World::ready();
        let before = without_bookkeeping(&world.objects[&id]);
        by_kubectl(&mut world, &id, &path, value);
        world.settle_rolling();
        assert_eq!(world.story(), "Ready/True/AllChecksPassed", "{path:?}");
        assert_eq!(without_bookkeeping(&world.objects[&id]), before, "{path:?}");
    }
}

/// Seeding a standby anew replaces its data: nobody else's key asks for it.
#[test]
fn a_request_to_seed_anew_by_other_hands_is_taken_back() {
    let mut world = check::cluster::three();
    let config = world.names().config_map();
    let pod = world.objects[&world.names().pod(1)]["metadata"]["uid"].clone();
    world.meddle(&config, |object| object["data"]["reseed-1"] = json!(""));
    by_kubectl(&mut world, &config, &["data", "reseed-1"], pod.as_str().unwrap());
    world.settle_rolling();
    assert_eq!(world.objects[&world.names().pod(1)]["metadata"]["uid"], pod);
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}

/// With one of the two objects gone, the other still knows.
#[test]
fn the_loss_of_one_object_loses_no_record() {
    let names = World::ready().names();
    for id in [names.stateful_set(), names.config_map()] {
        let mut world = World::ready();
        world.objects.remove(&id);
        world.edit(|root| {
            root["spec"]["databaseName"] = json!("other");
            root["spec"]["image"] = json!("postgres:17");
        });
        world.settle_rolling();
        let message = world.condition("Ready").2;
        assert_eq!(world.condition("Ready").1, "RenameRefused", "{id} gone: {message}");
        assert!(message.contains("\"mydb\""), "{message}");
        let set = &world.objects[&names.stateful_set()];
        let image = &set["spec"]["template"]["spec"]["containers"][0]["image"];
        assert_eq!(image, "postgres:14", "{id} gone");
    }
}

/// A volume that was kept says what its data were made with: another Database of the name is held to
/// it, as if it had never been away (issue 2).
#[test]
fn another_database_of_the_name_finds_what_the_kept_data_were_made_with() {
    let edits = [
        ("databaseName", json!("other"), "RenameRefused", "\"mydb\""),
        ("username", json!("other"), "RenameRefused", "\"admin\""),
        ("storage", json!({"size": "5Gi"}), "StorageShrinkRefused", "10Gi"),
        (
            "storage",
            json!({"size": "10Gi", "storageClass": "slow"}),
            "StorageClassChangeRefused",
            "fast",
        ),
    ];
    for (field, value, reason, words) in edits {
        let mut world = World::new();
        world.edit(|root| root["spec"]["storage"]["storageClass"] = json!("fast"));
        for class in ["fast", "slow"] {
            let id = ObjectId::new(operators::database::names::storage_class_kind(), "", class);
            world.store(&id, json!({"provisioner": "x", "metadata": {}}));
        }
        world.bring_up();
        world.settle_rolling();
        let (claim, superuser) = (world.names().data_claim(), world.names().superuser_secret());
        world.objects.retain(|id, _| [&claim, &superuser].contains(&id) || id.namespace.is_empty());
        let before = world.objects.clone();
        let mut root = check::seed();
        root["metadata"]["uid"] = json!("uid-second");
        root["metadata"]["resourceVersion"] = json!("900");
        root["metadata"]["generation"] = json!(1);
        root["spec"][field] = value;
        world.root = root;
        world.settle_rolling();
        let (_, said, message) = world.condition("Ready");
        assert_eq!(said, reason, "{message}");
        assert!(message.contains(words), "{message}");
        // What opens the kept data is not this one's to take along.
        let mut deleted = world.clone();
        deleted.delete_root("Delete");
        deleted.settle();
        assert!(deleted.gone);
        let kept = [&claim, &superuser].map(|id| deleted.objects.get(id).cloned());
        assert_eq!(kept, [&claim, &superuser].map(|id| Some(before[id].clone())), "{field}");
        world.edit(|root| root["spec"] = check::seed()["spec"].clone());
        world.settle_rolling();
        assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    }
}
