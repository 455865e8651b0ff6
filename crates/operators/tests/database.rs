//! Histories of a Database: bring-up, edits in every phase, drift, Secrets, takeover, pause.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::{World, seed};
use operators::database::names;
use serde_json::{Value, json};

const PHASES: [&str; 6] =
    ["Pending", "Provisioning", "Configuring", "Deploying", "Verifying", "Ready"];

/// A world that has just shown `phase` for the first time.
fn at(phase: &str) -> World {
    let mut world = World::new();
    for _ in 0..40 {
        world.pass();
        if world.phase() == phase {
            world.writes.clear();
            return world;
        }
        world.roll_out();
    }
    panic!("never {phase}: {}", world.root["status"]);
}

#[test]
fn six_phases_in_order_and_few_writes() {
    let mut world = World::new();
    let mut phases: Vec<String> = Vec::new();
    for _ in 0..40 {
        let plan = world.pass();
        if phases.last().map(String::as_str) != Some(world.phase()) {
            let moved = plan.transition.expect("a move is told");
            assert_eq!(moved.to, world.phase());
            assert!(plan.events.iter().any(|e| e.reason == "PhaseChanged"));
            phases.push(world.phase().to_owned());
        }
        world.roll_out();
        if world.phase() == "Ready" {
            break;
        }
    }
    assert_eq!(phases, PHASES);
    world.settle_rolling();
    let api = world.writes.iter().filter(|w| !w.starts_with("act")).count();
    assert!(api <= 17, "{api} writes: {:#?}", world.writes);
    let status = &world.root["status"];
    assert_eq!(status["endpoint"], "test-db.default.svc.cluster.local:5432");
    assert_eq!(status["secretName"], "test-db-credentials");
    assert_eq!(status["systemIdentifier"], "7000000000000000001");
    assert_eq!(world.condition("Ready").1, "AllChecksPassed");
    assert_eq!(world.condition("Progressing").1, "ReconciliationComplete");
}

/// Nothing is created before the finalizer is there, and the StatefulSet comes after its Secrets.
#[test]
fn children_come_in_the_order_of_their_needs() {
    let mut world = World::new();
    world.bring_up();
    let place = |what: &str| world.writes.iter().position(|w| w.contains(what)).expect("written");
    assert_eq!(place("finalizer"), 0);
    for needed in ["-superuser", "-replication", "-credentials", "-config"] {
        assert!(place(needed) < place("StatefulSet"), "{needed}");
    }
    assert!(place("StatefulSet") < place("Service"));
}

#[test]
fn a_settled_database_is_not_written() {
    let mut world = World::ready();
    for _ in 0..200 {
        world.advance(300);
        world.pass();
    }
    assert_eq!(world.writes, [] as [&str; 0]);
}

/// The wrong password is tried on every verification; a server that lets it in is never Ready.
#[test]
fn a_server_that_trusts_everybody_is_not_ready() {
    let mut world = at("Verifying");
    world.roll_out();
    world.server.trusts = true;
    world.settle();
    assert_eq!(world.story(), "Failed/False/PasswordNotChecked");
    world.server.trusts = false;
    world.settle();
    assert_eq!(world.phase(), "Ready");
}

#[test]
fn a_spec_edit_is_taken_up_in_every_phase() {
    for phase in PHASES {
        let mut world = at(phase);
        world.edit(|root| {
            root["spec"]["parameters"] = json!({"max_connections": "300"});
            root["spec"]["resources"] = json!({"limits": {"memory": "1Gi"}});
        });
        world.settle_rolling();
        assert_eq!(world.phase(), "Ready", "edited in {phase}");
        let names = world.names();
        let conf = &world.objects[&names.config_map()]["data"]["postgresql.conf"];
        assert!(conf.as_str().unwrap().contains("max_connections = '300'"), "edited in {phase}");
        let pod = &world.objects[&names.primary_pod()]["spec"]["containers"][0];
        assert_eq!(pod["resources"]["limits"]["memory"], "1Gi", "edited in {phase}");
        assert_eq!(world.root["status"]["observedGeneration"], 2, "edited in {phase}");
    }
}

/// Deleted in Ready: the phase goes back to the rung concerned and only that child is written.
#[test]
fn a_lost_child_comes_back_alone() {
    let names = World::new().names();
    let table = [
        (names.config_map(), "Provisioning", "apply ConfigMap default/test-db-config"),
        (names.client_service(), "Configuring", "apply Service default/test-db"),
        (names.headless_service(), "Configuring", "apply Service default/test-db-headless"),
        (names.stateful_set(), "Provisioning", "apply StatefulSet default/test-db"),
    ];
    for (id, phase, write) in table {
        let mut world = World::ready();
        world.objects.remove(&id);
        world.pass();
        assert_eq!(world.phase(), phase, "{id}");
        assert_eq!(world.condition("Ready").0, "False", "{id}");
        world.settle_rolling();
        assert_eq!(world.phase(), "Ready", "{id}");
        let objects: Vec<_> =
            world.writes.iter().filter(|w| !w.starts_with("status")).cloned().collect();
        assert_eq!(objects, [write]);
    }
}

/// A declared field is taken back in one write, with an Event; an undeclared one stays.
#[test]
fn an_edit_by_another_manager_is_taken_back() {
    let mut world = World::ready();
    let id = world.names().client_service();
    world.meddle(&id, |service| {
        service["spec"]["ports"][0]["targetPort"] = json!(1234);
        service["spec"]["externalTrafficPolicy"] = json!("Local");
        service["metadata"]["annotations"]["theirs"] = json!("kept");
    });
    let plan = world.pass();
    assert!(plan.events.iter().any(|e| e.reason == "EditReverted"), "{:?}", plan.events);
    assert_eq!(world.phase(), "Ready", "drift does not move the phase");
    let service = &world.objects[&id];
    assert_eq!(service["spec"]["ports"][0]["targetPort"], "postgresql");
    assert_eq!(service["spec"]["externalTrafficPolicy"], "Local");
    assert_eq!(service["metadata"]["annotations"]["theirs"], "kept");
    let objects = world.writes.iter().filter(|w| !w.starts_with("status")).count();
    assert_eq!(objects, 1);
}

#[test]
fn managers_that_fight_are_named() {
    let mut world = World::ready();
    let id = world.names().client_service();
    for _ in 0..3 {
        world.meddle(&id, |s| s["spec"]["ports"][0]["targetPort"] = json!(1234));
        world.pass();
        world.advance(10);
    }
    world.settle();
    assert_eq!(world.condition("Degraded").1, "ManagersFight");
    let message = world.condition("Degraded").2;
    assert!(message.contains("3 edits") && message.contains("targetPort"), "{message}");
    assert_eq!(world.condition("Ready").0, "True");
    world.advance(601);
    world.settle();
    assert_eq!(world.condition("Degraded").0, "False", "forgotten after a pause");
    assert!(world.root["status"].get("reverts").is_none());
}

/// An orphaning delete leaves everything; a new Database of the name takes it over without a
/// restart, and the server's evidence still counts.
#[test]
fn a_takeover_after_an_orphaning_delete_restarts_nothing() {
    let mut world = World::ready();
    let pod = world.objects[&world.names().primary_pod()].clone();
    let config = world.server.config.clone();
    for object in world.objects.values_mut() {
        object["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    }
    let mut root = seed();
    root["metadata"]["uid"] = json!("uid-second");
    root["metadata"]["resourceVersion"] = json!("900");
    root["metadata"]["generation"] = json!(1);
    world.root = root;
    world.bring_up();
    let kept = &world.objects[&world.names().primary_pod()];
    assert_eq!(kept["metadata"]["uid"], pod["metadata"]["uid"], "no restart");
    assert_eq!(kept["spec"], pod["spec"], "no restart");
    assert_eq!(world.server.config, config);
    let set = &world.objects[&world.names().stateful_set()];
    assert_eq!(set["metadata"]["ownerReferences"][0]["uid"], "uid-second");
    let claim = &world.objects[&world.names().data_claim()];
    assert_eq!(claim["metadata"]["annotations"]["steadfast.dev/resource-uid"], "uid-second");
    assert!(!world.writes.iter().any(|w| w.starts_with("create")), "{:?}", world.writes);
}

#[test]
fn a_paused_database_is_only_reported() {
    let mut world = World::ready();
    world.edit(|root| {
        root["metadata"]["annotations"] = json!({"steadfast.dev/paused": "true"});
        root["spec"]["parameters"] = json!({"work_mem": "64MB"});
    });
    let id = world.names().client_service();
    world.objects.remove(&id);
    world.settle();
    assert!(world.writes.iter().all(|w| w.starts_with("status")), "{:?}", world.writes);
    assert_eq!(world.condition("Progressing").1, "Paused");
    assert_eq!(world.condition("Ready").0, "False", "a lost Service is still told");
    world.edit(|root| {
        root["metadata"].as_object_mut().unwrap().remove("annotations");
    });
    world.settle_rolling();
    assert_eq!(world.phase(), "Ready");
    assert!(world.objects.contains_key(&id));
}

#[test]
fn a_database_paused_from_the_start_stays_pending() {
    let mut world = World::new();
    world.edit(|root| {
        root["metadata"]["annotations"] = json!({"steadfast.dev/paused": "true"});
    });
    world.settle();
    assert_eq!(world.story(), "Pending/False/Paused");
    assert!(world.objects.is_empty());
}

/// Each phase is held for the dwell time, and the wake-up is its end.
#[test]
fn phases_dwell_when_asked_to() {
    let mut world = World::new();
    world.settings.phase_dwell_seconds = 15;
    let mut seen = Vec::new();
    for _ in 0..200 {
        world.pass();
        world.roll_out();
        seen.push(world.phase().to_owned());
        if world.phase() == "Ready" {
            break;
        }
        world.advance(1);
    }
    for phase in &PHASES[..5] {
        let shown = seen.iter().filter(|p| p == phase).count();
        assert!((15..=17).contains(&shown), "{phase} for {shown} seconds");
    }
}

/// The status belongs to everybody: foreign conditions survive and do not cause writes (PG-27).
#[test]
fn pg_27_conditions_of_others_survive() {
    let mut world = World::ready();
    let theirs = json!({"type": "Audited", "status": "True", "reason": "Fine", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    world.root["status"]["conditions"].as_array_mut().unwrap().push(theirs.clone());
    world.settle();
    assert_eq!(world.writes, [] as [&str; 0]);
    world.edit(|root| root["spec"]["parameters"] = json!({"work_mem": "64MB"}));
    world.settle_rolling();
    assert!(world.root["status"]["conditions"].as_array().unwrap().contains(&theirs));
}

/// A status that somebody emptied or forged is rebuilt from facts, and nothing is harmed (G-57).
#[test]
fn g_57_a_forged_status_is_rebuilt() {
    let forged = [
        json!({}),
        json!({"phase": "Ready", "ready": true, "readyReplicas": 7}),
        json!({"phase": "OfANewerRelease", "progress": "nonsense", "phaseSince": "yesterday"}),
        json!({"phase": "Failed", "retry": {"attempts": 3}}),
    ];
    for status in forged {
        let mut world = World::ready();
        let objects = world.objects.clone();
        world.root["status"] = status.clone();
        world.settle_rolling();
        assert_eq!(world.phase(), "Ready", "{status}");
        assert_eq!(world.root["status"]["systemIdentifier"], "7000000000000000001", "{status}");
        assert_eq!(world.objects, objects, "{status}");
    }
}

/// The claim of a former Database is still going away: it is waited for (PG-30).
#[test]
fn pg_30_a_claim_that_is_going_away_is_waited_for() {
    let mut world = World::new();
    let id = world.names().data_claim();
    let labels = operators::database::labels::child("test-db");
    world.store(
        &id,
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {
            "labels": labels, "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["kubernetes.io/pvc-protection"]}}),
    );
    world.settle();
    assert_eq!(world.story(), "Provisioning/False/ChildTerminating");
    assert!(!world.objects.contains_key(&world.names().stateful_set()));
    world.objects.remove(&id);
    world.bring_up();
}

/// `status.volume` and the claim template decide together with the spec; a size that nobody made a
/// volume of yet can still be corrected.
#[test]
fn a_claim_template_is_made_anew_before_any_volume_exists() {
    let mut world = World::new();
    for _ in 0..4 {
        world.pass();
    }
    assert!(world.objects.contains_key(&world.names().stateful_set()));
    world.edit(|root| root["spec"]["storage"]["size"] = json!("1Gi"));
    for _ in 0..20 {
        world.pass();
    }
    let set = &world.objects[&world.names().stateful_set()];
    let size = &set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"];
    assert_eq!(*size, "1Gi");
    world.bring_up();
}

#[test]
fn a_resource_that_does_not_parse_is_told_and_can_go() {
    let mut root: Value = World::new().root.clone();
    root["spec"]["replicas"] = json!("three");
    let live = |root: &Value| phased::Live::new(root.clone()).unwrap();
    let settings = phased::Settings::default();
    let now = World::new().now;
    type C = operators::database::DatabaseController;
    let plan = <C as phased::Controller>::unreadable(&live(&root), "replicas", &settings, now);
    let status = plan.status.expect("it is told").status;
    assert_eq!(status["phase"], "Pending");
    assert_eq!(status["conditions"][0]["reason"], "Unreadable");
    assert!(plan.steps.is_empty());
    root["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    root["metadata"]["finalizers"] = json!([operators::database::FINALIZER]);
    let plan = <C as phased::Controller>::unreadable(&live(&root), "replicas", &settings, now);
    assert_eq!(plan.steps.len(), 1);
}

/// Trouble in looking ends nothing that was verified, unless it will not heal by itself.
#[test]
fn troubled_passes_are_told() {
    use phased::fact::Fate;
    let world = World::ready();
    let live = phased::Live::new(world.root.clone()).unwrap();
    let tell = |fate| {
        let trouble = phased::Trouble { fate, reason: "Timeout".into(), message: "slow".into() };
        type C = operators::database::DatabaseController;
        <C as phased::Controller>::troubled(&live, &trouble, world.now)
    };
    let passing = tell(Fate::WorldMayHeal).status.unwrap().status;
    assert_eq!(passing["phase"], "Ready");
    assert_eq!(passing["ready"], true);
    let lasting = tell(Fate::UserMustAct).status.unwrap().status;
    assert_eq!(lasting["phase"], "Verifying");
    assert_eq!(lasting["ready"], false);
    assert_eq!(names::PORT, 5432);
}
