//! Volumes grow: each claim, then the set under its pods (fault catalogue PG-31; reference/database.md
//! section 4).

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::World;
use check::cluster::three;
use phased::fact::{Fate, Trouble};
use serde_json::{Value, json};

fn trouble(message: &str) -> Trouble {
    Trouble { fate: Fate::UserMustAct, reason: "Forbidden".to_owned(), message: message.to_owned() }
}

/// Three servers with a class that expands, growing from 10Gi to 20Gi.
fn growing(expands: bool) -> World {
    grow(three(), expands)
}

/// The same with one server.
fn growing_one() -> World {
    grow(World::ready(), true)
}

fn grow(mut world: World, expands: bool) -> World {
    let class = phased::ObjectId::new(operators::database::names::storage_class_kind(), "", "fast");
    world.store(
        &class,
        json!({"provisioner": "x", "allowVolumeExpansion": expands,
        "metadata": {}}),
    );
    for ordinal in 0..servers(&world) {
        let claim = world.names().claim(ordinal);
        world.meddle(&claim, |claim| claim["spec"]["storageClassName"] = json!("fast"));
    }
    let set = world.names().stateful_set();
    world.meddle(&set, |set| {
        set["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] = json!("fast");
    });
    world.edit(|root| {
        root["spec"]["storage"] = json!({"size": "20Gi", "storageClass": "fast"});
    });
    world.writes.clear();
    world
}

fn servers(world: &World) -> u32 {
    u32::try_from(world.root["spec"]["replicas"].as_u64().unwrap()).unwrap()
}

fn sizes(world: &World) -> Vec<String> {
    let claims = (0..servers(world)).map(|n| &world.objects[&world.names().claim(n)]["spec"]);
    let set = &world.objects[&world.names().stateful_set()]["spec"]["volumeClaimTemplates"][0];
    let specs = claims.chain([&set["spec"]]);
    specs.map(|s| s["resources"]["requests"]["storage"].as_str().unwrap().to_owned()).collect()
}

/// PG-31: claims first, then the set under its pods.
#[test]
fn pg_31_volumes_grow_and_no_pod_is_lost() {
    let mut world = growing(true);
    let uids = |world: &World| -> Vec<Value> {
        (0..3).map(|n| world.objects[&world.names().pod(n)]["metadata"]["uid"].clone()).collect()
    };
    let before = uids(&world);
    world.settle_rolling();
    assert_eq!(sizes(&world), ["20Gi"; 4]);
    assert_eq!(uids(&world), before);
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    let place = |what: &str| world.writes.iter().rposition(|w| w == what).unwrap();
    let delete = place("delete StatefulSet default/test-db");
    for ordinal in 0..3 {
        let claim = format!("apply PersistentVolumeClaim default/data-test-db-{ordinal}");
        assert!(place(&claim) < delete);
    }
    assert!(delete < place("apply StatefulSet default/test-db"));
}

/// Ready speaks of this generation: never while a claim or the set still asks for the old size. Seen on
/// a real node, with one server.
#[test]
fn pg_31_it_is_not_ready_for_a_size_that_is_not_asked_for() {
    for mut world in [growing(true), growing_one()] {
        for pass in 0..20 {
            world.pass();
            let status = &world.root["status"];
            let current = status["observedGeneration"] == world.root["metadata"]["generation"];
            if current && world.condition("Ready").0 == "True" {
                let asked = sizes(&world);
                assert!(asked.iter().all(|size| size == "20Gi"), "pass {pass}: {asked:?}");
            }
        }
        world.settle_rolling();
        assert!(sizes(&world).iter().all(|size| size == "20Gi"));
        assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    }
}

#[test]
fn pg_31_growth_survives_a_crash_at_every_write() {
    let mut plain = growing(true);
    plain.settle_rolling();
    for at in 0..plain.writes.len() {
        for before in [true, false] {
            let mut world = growing(true);
            world.crash_at = Some((at, before));
            world.settle_rolling();
            world.settle_rolling();
            assert_eq!(sizes(&world), ["20Gi"; 4], "write {at}, before: {before}");
            assert_eq!(world.story(), "Ready/True/AllChecksPassed", "write {at}");
        }
    }
}

#[test]
fn pg_31_a_class_that_does_not_expand_is_named() {
    let mut world = growing(false);
    world.settle_rolling();
    assert_eq!(world.story(), "Pending/False/StorageExpansionRefused");
    let said = world.condition("Ready").2;
    assert!(said.contains("\"fast\"") && said.contains("data-test-db-0"), "{said}");
    assert_eq!(sizes(&world), ["10Gi"; 4]);
    world.edit(|root| root["spec"]["storage"]["size"] = json!("10Gi"));
    world.settle_rolling();
    assert_eq!(world.phase(), "Ready", "the old value heals");
}

#[test]
fn pg_31_one_claim_that_fails_holds_the_set_back() {
    let mut world = growing(true);
    let claim = world.names().claim(1);
    world.refuses.insert(claim.clone(), trouble("exceeded quota: storage"));
    for _ in 0..10 {
        world.pass();
        world.roll_out();
    }
    assert_eq!(world.condition("Ready").1, "QuotaExceeded");
    assert_eq!(sizes(&world)[3], "10Gi", "the set waits");
    world.refuses.clear();
    world.advance(60);
    world.settle_rolling();
    assert_eq!(sizes(&world), ["20Gi"; 4]);
    assert_eq!(world.phase(), "Ready");
}

/// While the set is made anew the server runs on, and nothing says that it does not (issue 2).
#[test]
fn pg_31_a_growing_primary_is_not_called_unavailable() {
    let mut world = growing_one();
    let mut told = Vec::new();
    for _ in 0..20 {
        world.pass();
        told.push(world.condition("Degraded").1);
        world.roll_out();
    }
    assert!(told.iter().any(|reason| reason == "GrowingVolumes"), "{told:?}");
    assert!(!told.iter().any(|reason| reason == "PrimaryUnavailable"), "{told:?}");
}

/// A small claim of a class that cannot expand is served as it is; what is asked about it, about a
/// dependency and twice of a server that is silent, is asked within the rounds of one pass.
#[test]
fn the_questions_of_a_pass_end_although_the_server_is_silent() {
    let mut root = check::seed();
    root["spec"]["externalDependencies"] = json!([{"name": "x", "address": "broker.mq.svc:5672"}]);
    let mut world = World::of(root);
    world.bring_up();
    let class = phased::ObjectId::new(operators::database::names::storage_class_kind(), "", "fast");
    world.store(&class, json!({"provisioner": "x", "metadata": {}}));
    let claim = world.names().claim(0);
    world.meddle(&claim, |claim| {
        claim["spec"]["storageClassName"] = json!("fast");
        claim["spec"]["resources"]["requests"]["storage"] = json!("5Gi");
    });
    world.settle();
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
    world.server.up = false;
    world.settle();
    assert_eq!(world.condition("Ready").0, "False", "{}", world.story());
}
