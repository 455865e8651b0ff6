//! What `plan` says, held against what happens.
//!
//! Edits are drawn from every leaf of the schema (set, change, remove, and combinations). Each is
//! foreseen, then applied for real on the simulator with the real runner, and children, restarted pods
//! with their order, and phases are compared. Everything here runs under virtual time.

#[path = "../support/mod.rs"]
mod support;

mod drawn;
mod picture;
mod truth;

use std::collections::BTreeMap;

use serde_json::json;
use support::simulate;
use truth::Trial;

/// Edits in one world. It fills with Events, so that later edits take longer.
const EDITS: usize = 65;
/// Worlds of each run; four runs make up a thousand edits and more.
const WORLDS: usize = 4;
/// How many worlds a run has here, and how many edits each. In the hermetic check, which is run at every
/// change, one half of one, so that each leaf has its turn; `cargo xtask test` makes all of them.
fn extent() -> (usize, usize) {
    let hermetic = std::env::var("STEADFAST_HERMETIC").is_ok_and(|value| value == "1");
    if hermetic { (1, EDITS.div_ceil(2)) } else { (WORLDS, EDITS) }
}

/// Of a hundred edits at least so many come out as foreseen.
const PERCENT: usize = 99;

fn run(seed: u64) {
    let (worlds, edits) = extent();
    let mut misses = Vec::new();
    let mut shapes: BTreeMap<String, usize> = BTreeMap::new();
    for world in 0..worlds {
        // Leaves go round over all worlds of a run.
        let (first, seed) = (world * edits, seed + world as u64);
        let verdicts = simulate(move || async move {
            let mut trial = Trial::begin(seed).await;
            let mut verdicts = Vec::new();
            for number in first..first + edits {
                let verdict = trial.draw(number).await;
                verdict.miss.iter().for_each(|miss| println!("MISS {miss}"));
                verdicts.push(verdict);
            }
            verdicts
        });
        for verdict in verdicts {
            *shapes.entry(verdict.shape).or_default() += 1;
            misses.extend(verdict.miss);
        }
        println!("seed {seed}: {} edits, {} misses", first + edits, misses.len());
    }
    let all = worlds * edits;
    println!("seed {seed}: {} of {all} edits came out as foreseen; {shapes:?}", all - misses.len());
    assert!((all - misses.len()) * 100 >= all * PERCENT, "misses:\n{}", misses.join("\n"));
}

#[test]
fn edits_come_out_as_foreseen_first_quarter() {
    run(101);
}

#[test]
fn edits_come_out_as_foreseen_second_quarter() {
    run(202);
}

#[test]
fn edits_come_out_as_foreseen_third_quarter() {
    run(303);
}

#[test]
fn edits_come_out_as_foreseen_fourth_quarter() {
    run(404);
}

#[test]
fn a_first_install_comes_out_as_foreseen() {
    let miss = simulate(|| async { Trial::first_install(5).await });
    assert_eq!(miss, None);
}

#[test]
fn a_growing_volume_comes_out_as_foreseen() {
    let miss = simulate(|| async {
        let mut trial = Trial::begin(6).await;
        let mut larger = trial.manifest.clone();
        larger["spec"]["storage"]["size"] = "20Gi".into();
        trial.edit(&larger, "storage.size = 20Gi").await.0.miss
    });
    assert_eq!(miss, None);
}

#[test]
fn servers_that_come_and_go_come_out_as_foreseen_with_their_slots_and_volumes() {
    let (told, slots) = simulate(|| async { Trial::begin(8).await.scale().await });
    let misses: Vec<_> = told.iter().filter_map(|(miss, _)| miss.as_ref()).collect();
    assert!(misses.is_empty(), "{misses:?}");
    let said = told.iter().map(|(_, said)| said.as_str()).collect::<Vec<_>>();
    insta::assert_snapshot!(said.join("\n\n"));
    assert_eq!(slots, "", "what was foreseen to be dropped is gone");
}

/// Each edit of a ZookeeperCluster with what it leads to: a roll, a growth, a shrinking, a Service
/// alone, nothing, a refusal.
#[test]
fn edits_of_an_ensemble_come_out_as_foreseen() {
    let misses = simulate(|| async {
        let mut trial = Trial::begin_cluster(9).await;
        let mut misses = Vec::new();
        for (field, value) in [
            ("/spec/clientService", json!({"annotations": {"team": "blue"}})),
            ("/spec/image", json!({"tag": "0.2.16"})),
            ("/spec/pod", json!({"labels": {"team": "blue"}})),
            ("/spec/config", json!({"tickTime": 3000})),
            ("/spec/replicas", json!(5)),
            ("/spec/replicas", json!(2)),
            ("/spec/maxUnavailableReplicas", json!(2)),
            ("/spec/storageType", json!("ephemeral")),
        ] {
            let mut after = trial.manifest.clone();
            let (above, last) = field.rsplit_once('/').expect("a path");
            after.pointer_mut(above).expect("there")[last] = value.clone();
            let (verdict, applied, _) = trial.edit(&after, &format!("{field} = {value}")).await;
            misses.extend(verdict.miss);
            if applied {
                trial.manifest = after;
            }
        }
        misses
    });
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
fn every_leaf_of_the_schema_is_among_the_edits() {
    let missing = drawn::leaves_without_samples();
    assert!(missing.is_empty(), "give them samples in drawn.rs: {missing:?}");
}

#[test]
fn every_write_that_a_plan_sends_is_a_dry_run() {
    let (writes, plain, before, after) = simulate(|| async { truth::writes_of_a_plan().await });
    assert!(writes >= 6, "creates, merges and applies were sent: {writes}");
    assert_eq!(plain, [""; 0], "writes without dryRun=All");
    assert_eq!(before, after, "nothing in the cluster changed");
}

/// Seed 104, edit 243: the roll stood still, since a new standby waited for the primary's turn.
#[test]
fn more_servers_and_another_template_in_one_edit_come_out_as_foreseen() {
    let misses = simulate(|| async {
        let mut trial = Trial::begin(9).await;
        let mut misses = Vec::new();
        for (replicas, weight) in [(3, 5), (2, 6), (3, 7)] {
            let mut after = trial.manifest.clone();
            after["spec"]["replicas"] = replicas.into();
            after["spec"]["podTemplate"]["affinity"] = serde_json::json!({"podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight,
                    "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"team": "blue"}}}}]}});
            let (verdict, ..) = trial.edit(&after, &format!("{replicas} servers, moved")).await;
            misses.extend(verdict.miss);
            trial.manifest = after;
        }
        misses
    });
    assert_eq!(misses, [""; 0]);
}
