//! The conformance suite: the same requests to the simulator and to a real API server, and the answers
//! compared (design.md section 4).
//!
//! What the real server answered is recorded in `conformance/recorded`: the hermetic test holds the
//! simulator against the record, the other one holds the record against the real server.
//! `UPDATE_CONFORMANCE=1` with the second one writes the record anew; a test must not do so by itself.

#[path = "conformance/compare.rs"]
mod compare;
#[path = "conformance/exchange.rs"]
mod exchange;
#[path = "conformance/normal.rs"]
mod normal;
#[path = "conformance/scenario.rs"]
mod scenario;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use compare::Difference;
use exchange::Answer;
use futures::StreamExt;
use scenario::Scenario;
use serde_json::json;
use sim::builtin::Switch;
use sim::world::World;

fn record(scenario: &str) -> PathBuf {
    scenario::folder().join("recorded").join(format!("{scenario}.json"))
}

fn recorded(scenario: &str) -> Result<Vec<Answer>> {
    let text = std::fs::read_to_string(record(scenario)).with_context(|| {
        format!("no record of {scenario}: run the machine test with UPDATE_CONFORMANCE=1")
    })?;
    serde_json::from_str(&text).with_context(|| format!("understand the record of {scenario}"))
}

/// A world without kubelet and scheduler: pods are moved by the scenarios' own requests, as on a control
/// plane without nodes.
async fn simulated(scenario: &Scenario) -> Result<Vec<Answer>> {
    let world = World::new(1);
    world.model(|model| {
        model.kubelet = Switch::External;
        model.scheduler = Switch::External;
    });
    let controllers = world.spawn();
    let client = kube::Client::new(world.cluster.service(), "default");
    let answers = exchange::run(&client, scenario).await;
    controllers.abort();
    answers
}

/// Standard error itself: what passes is not shown otherwise.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn report(found: &[Difference]) -> String {
    let lines = found.iter().map(|one| {
        format!(
            "{} / {} / {}\n    real: {}\n    sim:  {}",
            one.scenario, one.step, one.path, one.real, one.sim
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(start_paused = true)]
async fn the_simulator_answers_as_the_real_server_did() {
    let scenarios = scenario::all().unwrap();
    let known = compare::known().unwrap();
    let mut found = Vec::new();
    let mut broken = Vec::new();
    for scenario in &scenarios {
        let real = recorded(&scenario.name);
        match simulated(scenario).await.and_then(|sim| Ok((real?, sim))) {
            Ok((real, sim)) => found.extend(compare::differences(&scenario.name, &real, &sim)),
            Err(error) => broken.push(format!("{error:#}")),
        }
    }
    let requests: usize = scenarios.iter().map(|scenario| scenario.steps.len()).sum();
    let places: usize = known.iter().map(|one| one.at.len()).sum();
    say(&format!(
        "conformance: {requests} requests in {} scenarios, {} known differences in {places} places",
        scenarios.len(),
        known.len()
    ));
    let (unknown, mut outdated) = compare::judge(found, &known);
    if std::env::var("CONFORMANCE_ONLY").is_ok() {
        outdated.clear();
    }
    assert!(
        broken.is_empty() && unknown.is_empty() && outdated.is_empty(),
        "{} broken, {} unknown differences:\n{}\n{}\nknown differences that do not show: {outdated:#?}",
        broken.len(),
        unknown.len(),
        broken.join("\n"),
        report(&unknown),
    );
}

#[tokio::test]
async fn a_real_server_answers_as_recorded() -> Result<()> {
    let Some(_binaries) = testbed::require_or_skip()? else { return Ok(()) };
    let plane = testbed::ControlPlane::shared().await?;
    let mut config = plane.config_for(&testbed::Identity::Admin).await?;
    // Every answer is compared, also one that asks to try again.
    config.default_retry = false;
    let client = kube::Client::try_from(config).context("build a client")?;
    let scenarios = scenario::all()?;
    let outcomes: Vec<(&str, Result<Vec<Answer>>)> = futures::stream::iter(&scenarios)
        .map(|scenario| async { (scenario.name.as_str(), exchange::run(&client, scenario).await) })
        .buffered(8)
        .collect()
        .await;
    let mut transcripts = Vec::new();
    let mut broken = Vec::new();
    for (name, outcome) in outcomes {
        match outcome {
            Ok(answers) => transcripts.push((name, answers)),
            Err(error) => broken.push(format!("{error:#}")),
        }
    }
    if std::env::var("UPDATE_CONFORMANCE").is_ok_and(|value| value == "1") {
        for (name, answers) in &transcripts {
            let text = serde_json::to_string_pretty(answers).context("write a record")?;
            std::fs::write(record(name), text + "\n").context("write a record")?;
        }
    }
    let mut found = Vec::new();
    for (name, answers) in &transcripts {
        found.extend(compare::differences(name, &recorded(name)?, answers));
    }
    assert!(
        found.is_empty() && broken.is_empty(),
        "{}\nthe record (real) against this server (sim):\n{}",
        broken.join("\n"),
        report(&found)
    );
    Ok(())
}

#[test]
fn the_readme_lists_every_known_difference() {
    let readme = include_str!("../README.md");
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let readme = flat(readme);
    for known in compare::known().unwrap() {
        assert!(
            readme.contains(&flat(&known.difference)),
            "not in README.md: {}",
            known.difference
        );
    }
}

/// An answer with this body.
fn answer(body: serde_json::Value) -> Answer {
    Answer {
        step: "look".to_owned(),
        code: 200,
        media: "application/json".to_owned(),
        warnings: Vec::new(),
        body,
    }
}

#[test]
fn a_difference_is_found_unless_known_and_a_known_one_must_show() {
    let real = [answer(json!({ "spec": { "a/b": 1, "list": [1, 2] } }))];
    let sim = [answer(json!({ "spec": { "a/b": 2, "list": [1] } }))];
    let found = compare::differences("here", &real, &sim);
    let paths: Vec<&str> = found.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["body/spec/a~1b", "body/spec/list"]);

    let known = |path: &str| -> Vec<compare::Known> {
        let at = json!([{ "scenario": "here", "step": "*", "path": path }]);
        serde_json::from_value(json!([{ "difference": "x", "at": at }])).unwrap()
    };
    let (unknown, outdated) = compare::judge(found.clone(), &known("body/*/list"));
    assert_eq!((unknown.len(), outdated.len()), (1, 0));
    let (unknown, outdated) = compare::judge(found, &known("body/status"));
    assert_eq!((unknown.len(), outdated.len()), (2, 1));
    assert!(compare::differences("here", &real, &real).is_empty());
}

#[test]
fn placeholders_keep_what_identity_says() {
    let mut eyes = normal::Eyes::default();
    let object = |uid: &str, version: &str| {
        let metadata = json!({ "name": "a", "uid": uid, "resourceVersion": version });
        json!({ "kind": "Pod", "metadata": metadata, "at": "2026-01-01T00:00:00Z" })
    };
    let (one, two) =
        ("11111111-2222-4333-8444-555555555555", "22222222-2222-4333-8444-555555555555");
    let shown = |value: serde_json::Value| {
        (value["metadata"]["uid"].clone(), value["metadata"]["resourceVersion"].clone())
    };
    let first = eyes.normalise(object(one, "5"), false);
    assert_eq!(first["at"], "<time>");
    assert_eq!(shown(first), (json!("<uid of Pod/a>"), json!("<new version>")));
    let again = eyes.normalise(object(one, "5"), false);
    assert_eq!(shown(again), (json!("<uid of Pod/a>"), json!("<same version>")));
    let other = eyes.normalise(object(two, "6"), false);
    assert_eq!(shown(other), (json!("<uid of Pod/a #2>"), json!("<new version>")));
    let owned = eyes.normalise(json!({ "owner": one, "text": format!("uid {two}") }), false);
    assert_eq!(owned, json!({ "owner": "<uid of Pod/a>", "text": "uid <uid of Pod/a #2>" }));
}
