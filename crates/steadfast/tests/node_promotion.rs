//! The runbook of docs/operate.md, "Promote a standby by hand", carried out word for word after the
//! primary's volume is lost.

mod real;

use kube::api::DeleteParams;
use real::kubectl::Kubectl;
use real::scene::{DB, Scene};
use real::{condition, exercise, is_whole};
use serde_json::{Value, json};

const HANDBOOK: &str = include_str!("../../../docs/operate.md");

/// The commands of a section, for this Database, in their order.
fn commands(section: &str) -> String {
    let begin = HANDBOOK.find(&format!("\n## {section}\n")).expect("the section is there");
    let text = &HANDBOOK[begin + 4..];
    let text = &text[..text.find("\n## ").unwrap_or(text.len())];
    let mut blocks = String::new();
    let mut indent = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        match indent {
            None if trimmed == "```sh" => indent = Some(line.len() - trimmed.len()),
            Some(_) if trimmed == "```" => indent = None,
            Some(depth) => {
                blocks.push_str(line.get(depth..).unwrap_or_default());
                blocks.push('\n');
            }
            None => {}
        }
    }
    blocks.replace("NAME", DB)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runbook_puts_a_standbys_data_in_the_place_of_the_lost_ones() {
    let Some(scene) = Scene::with_a_row("promotion by the runbook").await else { return };
    let mut spec = exercise();
    spec["replicas"] = json!(3);
    scene.apply(spec).await;
    scene.until("three servers", |d| is_whole(d, 3)).await;
    let identifier = scene.bench.database(DB).await["status"]["systemIdentifier"].clone();
    let gone = DeleteParams::default();
    scene.claims().delete(&format!("data-{DB}-0"), &gone).await.expect("deletable");
    scene.pods().delete(&format!("{DB}-0"), &gone).await.expect("deletable");
    scene.until("the loss", |d| condition(d, "Degraded")["reason"] == "DataMissing").await;

    let script = commands("Promote a standby by hand");
    assert!(script.contains("pg_promote") && script.contains("paused-"), "{script}");
    let said = Kubectl::of(&scene.bench).await.script(&script).await;
    assert!(said.lines().any(|line| line.trim() == "t"), "nobody was promoted: {said}");
    let beyond = format!("{DB}-2 does not stream");
    let apart = |database: &Value| {
        let degraded = condition(database, "Degraded");
        degraded["message"].as_str().is_some_and(|message| message.contains(&beyond))
    };
    let settled = |d: &Value| is_whole(d, 3) || apart(d);
    // The other standby had received more than the promoted one: the runbook has it copied anew.
    if apart(&scene.until("the others to follow, or to say that they cannot", settled).await) {
        scene.claims().delete(&format!("data-{DB}-2"), &gone).await.expect("deletable");
        scene.pods().delete(&format!("{DB}-2"), &gone).await.expect("deletable");
    }
    let database = scene.until("all three again", |d| is_whole(d, 3)).await;
    assert_eq!(database["status"]["systemIdentifier"], identifier);
    scene.close_with_the_row().await;
}
