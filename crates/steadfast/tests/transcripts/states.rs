//! Resources that are not as they should be, in the words of `plan` and `explain`: a stored spec that is
//! refused, children that are missing or edited, a pause, a deletion, standbys that are lacking.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::scenes::{parsed, settled};
use crate::shell::transcript;
use crate::support::{Bench, LONG, NAME, Operator, TEST_DB, replicas, simulate};

const PLAN: &str = "steadfast plan -f test-db.yaml";
const EXPLAIN: &str = "steadfast explain database/test-db";

/// The exercise's Database, settled, and its operator gone.
async fn left_alone() -> Bench {
    let (bench, operator) = settled(&parsed(TEST_DB)).await;
    operator.kill();
    bench
}

fn pause(bench: &Bench) {
    bench.edit(|root| root["metadata"]["annotations"]["steadfast.dev/paused"] = json!("true"));
}

/// A Service that is gone and one that leads elsewhere.
fn disturb(bench: &Bench) {
    bench.world.delete("Service", "default", "test-db-headless").expect("it is there");
    let port = |service: &mut Value| service["spec"]["ports"][0]["port"] = json!(5433);
    bench.world.edit("Service", "default", NAME, port).expect("a hand may");
}

async fn paused() -> (Bench, Operator) {
    let (bench, operator) = settled(&parsed(TEST_DB)).await;
    pause(&bench);
    disturb(&bench);
    bench.world.run_for(Duration::from_secs(20)).await;
    (bench, operator)
}

async fn planned(bench: &Bench, manifest: &Value) -> String {
    transcript(bench, PLAN, Some(manifest)).await
}

/// Stored under a laxer definition: the manifest changes nothing, and the operator refuses it.
#[test]
fn a_stored_spec_that_is_refused_is_no_unchanged_one() {
    let told = simulate(|| async {
        let bench = Bench::new(1);
        let _operator = bench.operator();
        bench.lax();
        let mut manifest = parsed(TEST_DB);
        manifest["spec"]["databaseName"] = json!("pg_own");
        bench.apply(&manifest.to_string());
        bench.told(NAME, &["InvalidSpec"], LONG).await;
        planned(&bench, &manifest).await
    });
    assert_snapshot!(told);
}

/// A part of the spec is held back, the rest is in force.
#[test]
fn a_stored_spec_that_is_refused_in_part_is_no_unchanged_one() {
    let told = simulate(|| async {
        let mut manifest = parsed(TEST_DB);
        let (bench, _operator) = settled(&manifest).await;
        bench.lax();
        manifest["spec"]["databaseName"] = json!("renamed");
        bench.edit(|root| root["spec"]["databaseName"] = json!("renamed"));
        bench.told(NAME, &["RenameRefused"], LONG).await;
        planned(&bench, &manifest).await
    });
    assert_snapshot!(told);
}

#[test]
fn a_stored_resource_that_does_not_parse_is_refused() {
    let told = simulate(|| async {
        let bench = Bench::new(1);
        let _operator = bench.operator();
        for mut definition in steadfast::manifests::crds().expect("they are serialisable") {
            let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = any;
            bench.apply(&definition.to_string());
        }
        let mut manifest = parsed(TEST_DB);
        manifest["spec"]["replicas"] = json!("one");
        bench.apply(&manifest.to_string());
        bench.told(NAME, &["Unreadable"], LONG).await;
        planned(&bench, &manifest).await
    });
    assert_snapshot!(told);
}

#[test]
fn children_that_are_not_as_declared_are_told_although_nothing_is_edited() {
    let (whole, disturbed) = simulate(|| async {
        let bench = left_alone().await;
        let whole = planned(&bench, &parsed(TEST_DB)).await;
        disturb(&bench);
        (whole, planned(&bench, &parsed(TEST_DB)).await)
    });
    assert!(whole.contains("is unchanged (test-db.yaml)") && whole.ends_with("\n0\n"), "{whole}");
    assert_snapshot!(disturbed);
}

#[test]
fn a_pause_holds_what_would_be_done() {
    let (repair, edit, explained) = simulate(|| async {
        let (bench, _operator) = paused().await;
        let mut manifest = parsed(TEST_DB);
        let repair = planned(&bench, &manifest).await;
        manifest["spec"]["image"] = json!("postgres:14.19");
        let edit = planned(&bench, &manifest).await;
        (repair, edit, transcript(&bench, EXPLAIN, None).await)
    });
    assert!(repair.ends_with("\n2\n") && edit.ends_with("\n2\n"), "{repair}{edit}");
    assert_snapshot!([repair, edit, explained].join("\n"));
}

#[test]
fn a_pause_of_what_is_whole_is_told_and_changes_nothing() {
    let (planned, explained, new) = simulate(|| async {
        let (bench, _operator) = settled(&parsed(TEST_DB)).await;
        pause(&bench);
        bench.world.run_for(Duration::from_secs(20)).await;
        let whole = planned(&bench, &parsed(TEST_DB)).await;
        let explained = transcript(&bench, EXPLAIN, None).await;
        let mut new = parsed(TEST_DB);
        new["metadata"]["name"] = json!("held");
        new["metadata"]["annotations"] = json!({"steadfast.dev/paused": "true"});
        (whole, explained, planned(&bench, &new).await)
    });
    assert!(planned.ends_with("\n0\n"), "{planned}");
    assert!(new.contains("is new") && new.contains("held:") && new.ends_with("\n2\n"), "{new}");
    assert_snapshot!([planned, explained].join("\n"));
}

#[test]
fn what_is_applied_to_a_resource_that_is_being_deleted_goes_with_it() {
    let told = simulate(|| async {
        let bench = left_alone().await;
        bench.world.delete("Database", "default", NAME).expect("it is there");
        planned(&bench, &parsed(TEST_DB)).await
    });
    assert_snapshot!(told);
}

/// The primary serves; one standby finds no place.
#[test]
fn a_ready_resource_that_lacks_something_says_so() {
    let told = simulate(|| async {
        let (bench, _operator) = replicas::three(1).await;
        let full = |node: &mut Value| node["spec"]["unschedulable"] = json!(true);
        for node in bench.world.list("Node", "") {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            bench.world.edit("Node", "", name, full).expect("a hand may");
        }
        bench.world.delete("Pod", "default", "test-db-2").expect("it is there");
        replicas::degraded(&bench, &["True", "StandbyUnavailable", "unschedulable"]).await;
        transcript(&bench, EXPLAIN, None).await
    });
    assert_snapshot!(told);
}

#[test]
fn a_ready_resource_is_looked_at_as_often_as_the_operator_verifies() {
    let [usual, often] = simulate(|| async {
        let (bench, _operator) = settled(&parsed(TEST_DB)).await;
        let often = format!("{EXPLAIN} --verify-every 1m");
        [transcript(&bench, EXPLAIN, None).await, transcript(&bench, &often, None).await]
    });
    assert!(usual.contains("Steadfast looks again in 5 min at the latest"), "{usual}");
    assert!(often.contains("Steadfast looks again in 1 min at the latest"), "{often}");
}

/// Rules at the root of the schema name no field for the server, which then writes `<nil>`.
#[test]
fn several_refusals_of_the_server_are_told_without_its_nil() {
    let told = simulate(|| async {
        let mut manifest = parsed(TEST_DB);
        let (bench, _operator) = settled(&manifest).await;
        manifest["spec"]["storage"]["size"] = json!("5Gi");
        manifest["spec"]["databaseName"] = json!("other");
        let rules = planned(&bench, &manifest).await;
        manifest["spec"]["replicas"] = json!("one");
        [rules, planned(&bench, &manifest).await].join("\n")
    });
    assert!(!told.contains("<nil>"), "{told}");
    assert_snapshot!(told);
}
