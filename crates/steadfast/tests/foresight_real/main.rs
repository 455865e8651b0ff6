//! A sample of the drawn edits on a real API server, with its StatefulSet controller and real PostgreSQL:
//! foreseen, made, compared as on the simulator; and no forecast writes anything there.

#[path = "../foresight/drawn.rs"]
#[allow(dead_code, reason = "that every leaf has samples is tested once")]
mod drawn;
#[path = "../support/kubectl.rs"]
#[allow(dead_code, reason = "one of its ways to apply is enough here")]
mod kubectl;
#[path = "../foresight/picture.rs"]
mod picture;
#[path = "../real/mod.rs"]
mod real;
mod trial;
mod watching;

use fastrand::Rng;
use serde_json::{Value, json};
use trial::Trial;

/// Each leaf of the schema has its turn once.
const EDITS: usize = 22;

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_of_edits_comes_out_as_foreseen_on_a_real_api_server() {
    let Some(bench) = real::bench().await else { return };
    let mut trial = Trial::begin(&bench).await;
    let mut chance = Rng::with_seed(505);
    let mut misses = Vec::new();
    for number in 0..EDITS {
        let (drawn, words) = drawn::edit(&trial.manifest, number, &mut chance);
        let miss = trial.edit(trial.at_home(drawn), &format!("#{number} {words}")).await;
        eprintln!("{} {words}", if miss.is_some() { "MISS" } else { "as foreseen:" });
        misses.extend(miss);
    }
    misses.extend(trial.edit(more_servers(&trial.manifest), "more servers and a template").await);
    let writes = trial.writes_of_the_planner().await;
    assert!(writes.len() >= EDITS, "each forecast asks the server: {writes:?}");
    let plain: Vec<&String> = writes.iter().filter(|uri| !uri.contains("dryRun=All")).collect();
    assert!(plain.is_empty(), "writes without dryRun=All: {plain:?}");
    trial.end().await;
    bench.strike().await;
    assert!(misses.is_empty(), "{} of {EDITS} and one:\n{}", misses.len(), misses.join("\n"));
}

/// More servers and another template in one edit: the set waits for its new servers before it rolls the
/// primary, and they wait for the operator.
fn more_servers(manifest: &Value) -> Value {
    let mut after = manifest.clone();
    after["spec"]["replicas"] = json!(3);
    after["spec"]["podTemplate"]["annotations"] = json!({"note": "more"});
    after
}
