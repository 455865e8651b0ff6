//! The API server and its store are away for half a minute while a Database on a real node is brought
//! up, updated, or at rest: it converges, nothing is doubled, and no server is started again for it.

mod real;

use std::process::Command;
use std::time::{Duration, Instant};

use real::process::Program;
use real::scene::DB;
use real::update::{bench, children, pod, ready, revision};
use real::{Bench, PATIENCE, is_ready};
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_and_its_store_may_be_away_in_bring_up_and_in_an_update() {
    let Some(bench) = bench().await else { return };
    let began = Instant::now();
    let program = Program::prepare(&bench).await;
    program.start(None);
    bench.apply_database(DB, revision(0)).await;
    let under_way = |d: &Value| d["status"]["phase"] == "Deploying";
    bench.until(DB, PATIENCE, under_way).await.expect("it gets under way");
    outage(&bench).await;
    ready(&bench, "after an outage in bring-up").await;
    let expected = children(&bench).await;
    let (before, restarts) = pod(&bench).await;
    assert_eq!(restarts, 0, "the outage restarted the server");
    bench.apply_database(DB, revision(1)).await;
    let seen = |d: &Value| !is_ready(d);
    bench.until(DB, PATIENCE, seen).await.expect("the update gets under way");
    outage(&bench).await;
    ready(&bench, "after an outage in an update").await;
    let (after, restarts) = pod(&bench).await;
    assert_ne!(after, before, "the update never came into force");
    assert_eq!(restarts, 0, "the outage restarted the server");
    assert_eq!(children(&bench).await, expected);
    // A third outage, with nothing under way, moves nothing.
    outage(&bench).await;
    ready(&bench, "after an outage at rest").await;
    assert_eq!(pod(&bench).await, (after, 0), "an outage at rest restarted the server");
    program.end().await;
    drop(program);
    eprintln!(
        "scenario API server and etcd away, three times: {:.1} s",
        began.elapsed().as_secs_f32()
    );
}

/// The API server ends and its store stands still for half a minute.
async fn outage(bench: &Bench) {
    let etcd = bench.plane.processes().await;
    let etcd =
        etcd.iter().find(|(name, _)| *name == "etcd").map(|(_, pid)| *pid).expect("etcd runs");
    let signal = |which: &str| {
        let sent = Command::new("kill").args([which, &etcd.to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "etcd takes {which}");
    };
    let began = Instant::now();
    bench.plane.stop_api_server().await.expect("it stops");
    eprintln!("the API server took {:.1} s to end", began.elapsed().as_secs_f32());
    signal("-STOP");
    // poll: nothing; the length of the outage is what is tried
    tokio::time::sleep(Duration::from_secs(30)).await;
    signal("-CONT");
    let began = Instant::now();
    bench.plane.start_api_server().await.expect("it starts");
    eprintln!("and {:.1} s to serve again", began.elapsed().as_secs_f32());
}
