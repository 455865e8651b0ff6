//! How a demo ends: with the exit code of its outcome, soon after it was told to, and with nothing left
//! of it, be it by `--once`, a signal, or a panic.

mod console;

use std::process::Command;

use console::{Demo, MOVES, TO_END, assert_in_order, require, until};
use kube::Api;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

#[test]
fn once_shows_the_phases_in_order_and_exits_with_success() {
    if require(false).is_none() {
        return;
    }
    let mut demo = Demo::start(&["--once"]);
    let (status, output, _) = demo.end();
    assert_eq!(status.code(), Some(0), "{output}");
    assert_in_order(&output, &MOVES);
    assert!(output.contains("a real PostgreSQL"), "{output}");
    assert!(!output.contains("MODEL"), "{output}");
    assert!(output.contains("AllChecksPassed"), "{output}");
    demo.leaves_nothing();
}

fn model(arguments: &[&str]) -> (Option<i32>, String) {
    let mut demo = Demo::start(&[&["--once", "--model"], arguments].concat());
    let (status, output, _) = demo.end();
    demo.leaves_nothing();
    (status.code(), output)
}

#[test]
fn the_model_is_called_a_model_and_becomes_ready_too() {
    let (code, output) = model(&[]);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("A MODEL of PostgreSQL answers"), "{output}");
    assert_in_order(&output, &MOVES);
    assert!(!output.contains(" INFO "), "log lines repeat what is shown: {output}");
}

/// Seconds since the start, of each line that tells of a move.
fn times_of_moves(output: &str) -> Vec<f64> {
    let moves = output.lines().filter(|line| line.contains("STATE TRANSITION"));
    moves
        .map(|line| line.split_whitespace().nth(1).expect("a time").parse().expect("seconds"))
        .collect()
}

#[test]
fn phases_are_held_as_long_as_was_asked() {
    let (code, output) = model(&["--phase-dwell", "3s"]);
    assert_eq!(code, Some(0), "{output}");
    assert_in_order(&output, &MOVES);
    let times = times_of_moves(&output);
    assert_eq!(times.len(), MOVES.len(), "{output}");
    // A status keeps whole seconds, so each of the five may seem to last up to one less; and the first
    // line may come late on a busy machine.
    assert!(times[5] - times[0] > 9.0, "{output}");
}

/// A manifest in a file, with the field and its value in the place of the exercise's.
fn manifest(change: impl FnOnce(&mut Value)) -> tempfile::NamedTempFile {
    let mut resource = serde_json::json!({
        "apiVersion": "database.example.com/v1", "kind": "Database",
        "metadata": {"name": "own-db"},
        "spec": {"image": "postgres:17", "databaseName": "own", "username": "owner",
            "storage": {"size": "1Gi"}}});
    change(&mut resource);
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), resource.to_string()).expect("it can be written");
    file
}

#[test]
fn exit_codes_tell_ready_from_not_ready_and_from_refused() {
    let with = |file: &tempfile::NamedTempFile, more: &[&str]| {
        let path = file.path().to_string_lossy().into_owned();
        model(&[&["-f", &path], more].concat())
    };
    let (code, output) = with(&manifest(|_| {}), &[]);
    assert_eq!(code, Some(0), "{output}");
    assert_in_order(&output, &MOVES);

    let waiting = manifest(|resource| {
        resource["spec"]["externalDependencies"] =
            serde_json::json!([{"name": "absent", "address": "absent.default.svc:1"}]);
    });
    let (code, output) = with(&waiting, &["--timeout", "4s"]);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("ExternalDependencyUnavailable"), "{output}");
    assert!(output.contains("not Ready after 4 s"), "{output}");

    let reserved = manifest(|resource| resource["spec"]["databaseName"] = "pg_own".into());
    let (code, output) = with(&reserved, &[]);
    assert_eq!(code, Some(3), "{output}");
    assert!(output.contains("the manifest was refused: Database own-db"), "{output}");
    assert!(output.contains("this name is PostgreSQL's own; choose another one"), "{output}");

    let (code, output) = model(&["-f", "/nonexistent.yaml"]);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("/nonexistent.yaml cannot be read"), "{output}");
}

/// Starts a demo and waits until its server runs.
fn with_a_server() -> Option<Demo> {
    require(false)?;
    let mut demo = Demo::start(&[]);
    demo.until_said("-> Deploying");
    // The server of the pod, not that of its bootstrap.
    demo.until_a_process_runs("listen_addresses=127.");
    Some(demo)
}

#[test]
fn told_to_terminate_it_ends_soon_and_leaves_nothing() {
    let Some(mut demo) = with_a_server() else { return };
    demo.signal("TERM");
    let (status, output, took) = demo.end();
    assert!(matches!(status.code(), Some(0 | 130)), "{status:?}: {output}");
    assert!(output.contains("steadfast: stopping"), "{output}");
    assert!(took < TO_END, "{took:?}");
    demo.leaves_nothing();
}

#[test]
fn interrupted_while_the_data_are_being_made_it_leaves_nothing() {
    if require(false).is_none() {
        return;
    }
    let mut demo = Demo::start(&[]);
    demo.until_a_process_runs("initdb");
    demo.signal("INT");
    let (status, output, took) = demo.end();
    assert_eq!(status.code(), Some(130), "{output}");
    assert!(took < TO_END, "{took:?}");
    demo.leaves_nothing();
}

#[test]
fn killed_it_leaves_nothing() {
    let Some(mut demo) = with_a_server() else { return };
    demo.signal("KILL");
    let (status, _, _) = demo.end();
    assert_eq!(status.code(), None);
    demo.leaves_nothing();
}

/// Set in the process that the next test starts in order to see it panic.
const PANICS: &str = "STEADFAST_TEST_PANICS";

/// Plays both parts: this program again, for this one test, builds the demo's stage and panics on it.
#[test]
fn a_panic_leaves_nothing() {
    if std::env::var_os(PANICS).is_some() {
        return panic_on_stage();
    }
    if require(false).is_none() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "a_panic_leaves_nothing", "--nocapture"]).env(PANICS, "1");
    let mut demo = Demo::run(command);
    let (status, output, _) = demo.end();
    assert_eq!(status.code(), Some(101), "{output}");
    assert!(output.contains("a panic on purpose, with a server running"), "{output}");
    demo.leaves_nothing();
}

fn panic_on_stage() {
    use clap::Parser;
    let cli = steadfast::args::Cli::parse_from(["steadfast", "demo"]);
    let steadfast::args::Command::Demo(options) = cli.command else { unreachable!("as parsed") };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let stage = steadfast::demo::stage::Stage::build(&options, options.model, &stop)
            .await
            .expect("a stage");
        let text = include_str!("../../../examples/test-db.yaml");
        let resource: kube::api::DynamicObject = serde_saphyr::from_str(text).expect("a resource");
        let kind = kube::core::GroupVersionKind::gvk("database.example.com", "v1", "Database");
        let kind = kube::api::ApiResource::from_gvk(&kind);
        let databases: Api<kube::api::DynamicObject> =
            Api::default_namespaced_with(stage.client.clone(), &kind);
        databases.create(&kube::api::PostParams::default(), &resource).await.expect("accepted");
        let folder = std::env::temp_dir();
        until("a server", || {
            let lines = console::processes_below(&folder);
            lines.iter().any(|line| line.contains("listen_addresses=127."))
        });
        assert!(folder.as_os_str().is_empty(), "a panic on purpose, with a server running");
    });
}
