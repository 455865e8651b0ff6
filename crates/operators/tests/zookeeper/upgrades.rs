//! The upgrade machine: each transition, and the seed's scenario as it is written.

use crate::ensemble::World;
use jiff::Timestamp;
use operators::zookeeper::upgrade::{Memory, Sight, State, advance};
use phased::deadline::Progress;
use serde_json::{Value, json};

const PATIENCE: i64 = 600;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn noon() -> Timestamp {
    at("2026-01-01T12:00:00Z")
}

/// A set in the middle of a roll from 1.0 to 2.0: one of three pods is updated.
fn rolling() -> Sight {
    Sight {
        observed: true,
        revisions_equal: false,
        update_revision: "r2".into(),
        updated: 1,
        wanted: 3,
        ready: 2,
        tag: "2.0".into(),
        released: true,
        image_is_to_change: false,
    }
}

fn done() -> Sight {
    Sight { revisions_equal: true, updated: 3, ready: 3, ..rolling() }
}

fn idle() -> Memory {
    Memory { current: Some("1.0".into()), ..Memory::default() }
}

/// Upgrading, with the last progress so many seconds before noon.
fn upgrading(seconds: i64) -> Memory {
    let since = noon().checked_sub(jiff::SignedDuration::from_secs(seconds)).unwrap();
    let since = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(since);
    let progress = Some(Progress { mark: "upgrade/r2/1".into(), since });
    Memory { state: State::Upgrading, target: Some("2.0".into()), progress, ..idle() }
}

fn failed() -> Memory {
    Memory { state: State::Failed, ..upgrading(700) }
}

fn next(memory: &Memory, sight: &Sight) -> Memory {
    advance(memory, Some(sight), PATIENCE, noon()).memory
}

#[test]
fn the_version_is_recorded_when_all_pods_are_ready_for_the_first_time() {
    let new = Memory::default();
    assert_eq!(next(&new, &Sight { ready: 2, ..done() }).current, None);
    assert_eq!(next(&new, &done()).current.as_deref(), Some("2.0"));
}

#[test]
fn idle_stays_idle_while_the_image_is_the_current_one() {
    let roll = Sight { tag: "1.0".into(), ..rolling() };
    assert_eq!(next(&idle(), &roll), idle());
}

#[test]
fn idle_begins_an_upgrade_when_the_revisions_differ() {
    let begun = next(&idle(), &rolling());
    assert_eq!((begun.state, begun.target.as_deref()), (State::Upgrading, Some("2.0")));
    assert_eq!(begun.current.as_deref(), Some("1.0"));
}

/// The set has not looked at the new template yet: equal revisions mean nothing then.
#[test]
fn an_unseen_generation_begins_and_ends_nothing() {
    let unseen = Sight { observed: false, revisions_equal: true, updated: 3, ..rolling() };
    assert_eq!(next(&idle(), &unseen), idle());
    assert_eq!(next(&upgrading(60), &unseen), upgrading(60));
    assert_eq!(next(&failed(), &unseen), failed());
}

/// A roll that was over before anybody looked, or that the replaced operator did not track.
#[test]
fn idle_takes_over_the_version_of_a_roll_that_is_done() {
    assert_eq!(next(&idle(), &done()).current.as_deref(), Some("2.0"));
}

#[test]
fn an_upgrade_waits_while_it_has_time() {
    assert_eq!(next(&upgrading(599), &rolling()), upgrading(599));
}

#[test]
fn another_number_of_updated_pods_is_progress() {
    let moved = next(&upgrading(599), &Sight { updated: 2, ..rolling() });
    assert_eq!(moved.state, State::Upgrading);
    assert_eq!(moved.progress.unwrap().since.0, noon());
}

#[test]
fn an_upgrade_without_progress_fails() {
    let memory = next(&upgrading(600), &rolling());
    assert_eq!(memory.state, State::Failed);
    assert_eq!(memory.target.as_deref(), Some("2.0"));
}

/// What is left of the roll is the set's own before the upgrade counts as failed, or a pod that gets
/// ready later could not complete it.
#[test]
fn a_roll_that_is_held_back_is_let_go_before_it_fails() {
    let held = Sight { released: false, ..rolling() };
    let outcome = advance(&upgrading(600), Some(&held), PATIENCE, noon());
    assert!(outcome.let_go);
    assert_eq!(outcome.memory.state, State::Upgrading);
}

#[test]
fn an_upgrade_ends_with_the_tag_of_the_template() {
    // The target that was remembered is not the one that runs.
    let ended = next(&upgrading(60), &Sight { tag: "3.0".into(), ..done() });
    assert_eq!(ended, Memory { current: Some("3.0".into()), ..Memory::default() });
}

/// Reverting makes the revisions equal at once; pods of the abandoned one may still be there.
#[test]
fn a_reverted_upgrade_goes_on_until_its_pods_are_back() {
    let reverted = Sight { revisions_equal: true, updated: 2, tag: "1.0".into(), ..rolling() };
    assert_eq!(next(&upgrading(60), &reverted).state, State::Upgrading);
    let back = next(&upgrading(60), &Sight { updated: 3, ..reverted });
    assert_eq!(back, idle());
}

#[test]
fn failed_stays_failed_while_the_revisions_differ() {
    assert_eq!(next(&failed(), &rolling()), failed());
    assert_eq!(next(&failed(), &Sight { updated: 2, ..rolling() }), failed());
}

#[test]
fn failed_ends_when_the_revisions_are_equal_again() {
    let ended = next(&failed(), &done());
    assert_eq!((ended.state, ended.current.as_deref()), (State::Idle, Some("2.0")));
    // Equal by a person's hand, with a pod still to come: not failed, and with fresh time.
    let by_hand = Sight { revisions_equal: true, updated: 2, tag: "1.0".into(), ..rolling() };
    let memory = next(&failed(), &by_hand);
    assert_eq!(memory.state, State::Upgrading);
    assert_eq!(memory.progress.unwrap().since.0, noon());
}

#[test]
fn failed_ends_when_the_image_is_to_change() {
    let memory = next(&failed(), &Sight { image_is_to_change: true, ..rolling() });
    assert_eq!((memory.state, memory.progress), (State::Upgrading, None));
}

#[test]
fn failed_ends_when_the_set_is_gone() {
    assert_eq!(advance(&failed(), None, PATIENCE, noon()).memory, idle());
}

fn set_tag(world: &mut World, tag: &str) {
    let image = json!({"tag": tag});
    world.edit(|root| root["spec"]["image"] = image);
}

fn template_image(world: &World) -> Value {
    world.set()["spec"]["template"]["spec"]["containers"][0]["image"].clone()
}

#[test]
fn an_upgrade_is_told_as_the_replaced_operator_tells_it() {
    let mut world = World::ready();
    set_tag(&mut world, "0.2.16");
    let mut told = Vec::new();
    for _ in 0..60 {
        world.pass();
        let one = world.condition("Upgrading");
        if told.last() != Some(&one) {
            told.push(one);
        }
        if told.len() == 2 {
            assert_eq!(world.root["status"]["targetVersion"], "0.2.16");
            assert_eq!(world.root["status"]["currentVersion"], "0.2.15");
        }
        world.tick();
    }
    let upgrading = |n: &str| ("True".to_owned(), "Updating Zookeeper".to_owned(), n.to_owned());
    let idle = ("False".to_owned(), String::new(), String::new());
    let expected =
        [idle.clone(), upgrading("0"), upgrading("1"), upgrading("2"), upgrading("3"), idle];
    let steps: Vec<_> = told.iter().filter(|one| expected.contains(one)).cloned().collect();
    assert_eq!(told, steps);
    assert_eq!((told.first(), told.last()), (expected.first(), expected.last()));
    assert!(told.contains(&upgrading("1")) && told.contains(&upgrading("2")), "{told:?}");
    assert_eq!(world.root["status"]["currentVersion"], "0.2.16");
    assert_eq!(world.root["status"].get("targetVersion"), None);
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}

/// The seed: revisions that differ for more than ten minutes mark the upgrade as failed; the set is
/// not changed even if the resource is; the mark goes when the revisions are equal again, and then
/// the resource's changes are carried out.
#[test]
fn the_seed() {
    let mut world = World::ready();
    set_tag(&mut world, "0.2.16");
    for _ in 0..4 {
        world.pass();
        world.tick();
    }
    world.break_pod(2);
    world.wait(590);
    assert_eq!(world.condition("Error").0, "False", "not before ten minutes");
    world.wait(60);
    let error = ("True".into(), "UpgradeFailed".into(), "progress deadline exceeded".into());
    assert_eq!(world.condition("Error"), error);
    assert_eq!(world.condition("Upgrading").0, "True");
    assert_eq!(world.phase(), "Failed");
    // New changes come, and the set is not changed.
    let set = world.set()["spec"].clone();
    world.edit(|root| root["spec"]["pod"]["annotations"]["note"] = json!("new"));
    world.edit(|root| root["spec"]["config"] = json!({"tickTime": 3000}));
    world.edit(|root| root["spec"]["replicas"] = json!(5));
    let plan = world.pass();
    let held: Vec<&str> = plan
        .notes
        .iter()
        .filter(|n| n.reason.name == "EditHeld")
        .map(|n| n.message.as_str())
        .collect();
    assert_eq!(held.len(), 3, "set, configuration and size are told as held: {plan:#?}");
    world.writes.clear();
    world.wait(1800);
    assert_eq!(world.set()["spec"], set);
    assert_eq!(world.writes, [] as [&str; 0], "a failed upgrade at rest writes nothing");
    // The slow pod gets ready by itself, the roll goes on by itself, and the edits flow.
    world.mend_pod(2);
    world.settle();
    assert_eq!(world.condition("Error").0, "False");
    assert_eq!(world.story(), "Ready/True/AllChecksPassed", "{}", world.root["status"]);
    assert_eq!(world.root["status"]["currentVersion"], "0.2.16");
    assert_eq!(world.set()["spec"]["replicas"], 5);
    assert_eq!(world.pod(4).unwrap()["metadata"]["annotations"]["note"], "new");
    assert!(world.servers.running.values().all(|s| s["tickTime"] == "3000"));
}

/// ZK-19: the former image is the way out, and the pod that could not start is made anew.
#[test]
fn zk_19_the_former_image_leads_out() {
    let mut world = World::ready();
    set_tag(&mut world, "bad");
    world.wait(900);
    assert_eq!(world.phase(), "Failed", "{}", world.root["status"]);
    let (_, _, message) = world.condition("Ready");
    assert!(message.contains("ImagePullFailed") && message.contains("0.2.15"), "{message}");
    assert_eq!(world.ready_pods().len(), 2, "one member is down at most");
    set_tag(&mut world, "0.2.15");
    world.pass();
    assert_eq!(world.condition("Error").0, "False", "at once");
    assert_eq!(template_image(&world), "pravega/zookeeper:0.2.15");
    world.settle();
    assert_eq!(world.story(), "Ready/True/AllChecksPassed", "{}", world.root["status"]);
    assert_eq!(world.images(), ["pravega/zookeeper:0.2.15"; 3]);
    assert_eq!(world.root["status"]["currentVersion"], "0.2.15");
}

/// Another image is a way out too, and takes the held edits along.
#[test]
fn another_image_leads_out_with_the_held_edits() {
    let mut world = World::ready();
    set_tag(&mut world, "bad");
    world.wait(900);
    world.edit(|root| root["spec"]["pod"]["annotations"]["note"] = json!("new"));
    world.wait(60);
    assert_eq!(template_image(&world), "pravega/zookeeper:bad");
    set_tag(&mut world, "0.2.17");
    world.settle();
    assert_eq!(world.images(), ["pravega/zookeeper:0.2.17"; 3]);
    assert_eq!(world.root["status"]["currentVersion"], "0.2.17");
    assert_eq!(world.pod(0).unwrap()["metadata"]["annotations"]["note"], "new");
    assert_eq!(world.story(), "Ready/True/AllChecksPassed");
}

/// The deadline is the resource's own.
#[test]
fn the_deadline_can_be_set() {
    let mut world = World::ready();
    world.edit(|root| root["spec"]["progressDeadlineSeconds"] = json!(60));
    set_tag(&mut world, "bad");
    world.wait(150);
    assert_eq!(world.condition("Error").1, "UpgradeFailed");
}

/// #95: a third image in the middle of an upgrade is simply another target.
#[test]
fn a_third_image_is_another_target() {
    let mut world = World::ready();
    set_tag(&mut world, "0.2.16");
    for _ in 0..6 {
        world.pass();
        world.tick();
    }
    set_tag(&mut world, "0.2.17");
    world.settle();
    assert_eq!(world.root["status"]["currentVersion"], "0.2.17");
    assert_eq!(world.images(), ["pravega/zookeeper:0.2.17"; 3]);
}

/// A set that is lost while its upgrade has failed is made anew.
#[test]
fn a_failed_set_that_is_lost_is_made_anew() {
    let mut world = World::ready();
    set_tag(&mut world, "bad");
    world.wait(900);
    set_tag(&mut world, "0.2.15");
    let id = world.names().stateful_set();
    world.stored.objects.remove(&id);
    (0..3).for_each(|n| world.lose_pod(n));
    world.settle();
    assert_eq!(world.story(), "Ready/True/AllChecksPassed", "{}", world.root["status"]);
    assert_eq!(world.condition("Error").0, "False");
}
