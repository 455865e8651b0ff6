//! A Database with standbys on a node with kubelet and containers: a row that was written before, and
//! a client that writes all along, survive what is planned.

mod real;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use real::scene::{DB, Scene};
use real::sql::{Who, ask, login};
use real::writer::Writer;
use real::{PATIENCE, condition, exercise, is_ready};
use serde_json::{Value, json};

/// The exercise's spec with so many servers.
fn servers(replicas: u32) -> Value {
    let mut spec = exercise();
    spec["replicas"] = json!(replicas);
    spec
}

/// Names of the standbys that the primary streams to now.
async fn streaming(scene: &Scene) -> BTreeSet<String> {
    let Ok(client) = login(&scene.bench, DB, Who::Superuser).await else { return BTreeSet::new() };
    let sql = "SELECT application_name FROM pg_stat_replication WHERE state = 'streaming'";
    let names = ask(&client, sql).await.unwrap_or_default();
    names.split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Waits until exactly these ordinals stream, and the Database is whole.
async fn whole(scene: &Scene, standbys: &[u32]) {
    let wanted: BTreeSet<String> = standbys.iter().map(|n| format!("{DB}-{n}")).collect();
    let began = Instant::now();
    loop {
        let seen = streaming(scene).await;
        let database = scene.bench.database(DB).await;
        let degraded = condition(&database, "Degraded");
        if seen == wanted && is_ready(&database) && degraded["status"] == "False" {
            return;
        }
        let status = &database["status"];
        assert!(
            began.elapsed() < PATIENCE,
            "{seen:?} {status:#}\n{}",
            scene.bench.describe().await
        );
        tokio::time::sleep(Duration::from_millis(300)).await; // poll: pg_stat_replication
    }
}

/// The row, read on a standby itself.
async fn row_on_standby(scene: &Scene, ordinal: u32) -> String {
    let sql =
        ["psql", "-U", "postgres", "-d", "mydb", "-Atc", "SELECT v, pg_is_in_recovery() FROM keep"];
    scene.exec(ordinal, &sql).await.trim().to_owned()
}

async fn slots(scene: &Scene) -> String {
    let client = login(&scene.bench, DB, Who::Superuser).await.expect("a login");
    let sql = "SELECT slot_name FROM pg_replication_slots ORDER BY 1";
    ask(&client, sql).await.expect("readable")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_standbys_stream_and_growing_to_them_restarts_no_primary() {
    let Some(scene) = Scene::with_a_row("scale 1 to 3, to 1, to 3").await else { return };
    let primary = scene.life(0).await;
    let writer = Writer::start(&scene.bench, DB).await;
    scene.apply(servers(3)).await;
    whole(&scene, &[1, 2]).await;
    for ordinal in [1, 2] {
        assert_eq!(row_on_standby(&scene, ordinal).await, "written before|t");
    }
    assert_eq!(slots(&scene).await, "steadfast_1;steadfast_2");
    scene.apply(servers(1)).await;
    whole(&scene, &[]).await;
    let none = async || slots(&scene).await.is_empty();
    scene.bench.eventually("slots are left", none).await;
    scene.apply(servers(3)).await;
    whole(&scene, &[1, 2]).await;
    assert_eq!(row_on_standby(&scene, 2).await, "written before|t");
    assert_eq!(scene.life(0).await, primary, "the primary was started again");
    let tally = writer.finish(&scene.bench, DB).await;
    tally.tell("scale 1 to 3, to 1, to 3");
    scene.close_with_the_row().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_change_rolls_standbys_first_and_loses_no_acknowledged_write() {
    let Some(scene) = Scene::open("image change on three servers").await else { return };
    scene.apply(servers(3)).await;
    whole(&scene, &[1, 2]).await;
    let writer = Writer::start(&scene.bench, DB).await;
    let mut spec = servers(3);
    spec["image"] = json!("postgres:15.1");
    scene.apply(spec).await;
    scene.ready("with the new image").await;
    whole(&scene, &[1, 2]).await;
    for ordinal in 0..3 {
        let pod = scene.pod(ordinal).await.expect("a pod");
        let image = pod.spec.and_then(|spec| spec.containers[0].image.clone());
        assert_eq!(image.as_deref(), Some("postgres:15.1"), "ordinal {ordinal}");
    }
    let tally = writer.finish(&scene.bench, DB).await;
    tally.tell("image change on three servers");
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_grows_under_load_without_a_restart() {
    let Some(scene) = Scene::with_a_row("growth").await else { return };
    let before = scene.life(0).await;
    let writer = Writer::start(&scene.bench, DB).await;
    let mut spec = exercise();
    spec["storage"]["size"] = json!("2Gi");
    scene.apply(spec).await;
    let grown = async || {
        let claim = scene.claims().get(&format!("data-{DB}-0")).await.expect("a claim");
        let capacity = claim.status.and_then(|s| s.capacity).unwrap_or_default();
        capacity.get("storage").is_some_and(|size| size.0 == "2Gi")
    };
    scene.bench.eventually("the claim does not grow", grown).await;
    scene.ready("with the larger volume").await;
    let set = scene.bench.api("apps", "StatefulSet", "statefulsets").get(DB).await.expect("a set");
    let asked = &set.data["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"];
    assert_eq!(asked["storage"], "2Gi");
    assert_eq!(scene.life(0).await, before, "the server was started again");
    let tally = writer.finish(&scene.bench, DB).await;
    tally.tell("growth");
    scene.close_with_the_row().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_whose_volume_is_lost_is_seeded_anew_while_the_primary_serves() {
    let Some(scene) = Scene::open("standby's volume lost").await else { return };
    scene.apply(servers(2)).await;
    whole(&scene, &[1]).await;
    let primary = scene.life(0).await;
    let writer = Writer::start(&scene.bench, DB).await;
    let (before, _) = scene.life(1).await;
    scene
        .claims()
        .delete(&format!("data-{DB}-1"), &DeleteParams::default())
        .await
        .expect("deletable");
    scene.pods().delete(&format!("{DB}-1"), &DeleteParams::default()).await.expect("deletable");
    let again = async || scene.life(1).await.0.is_some_and(|uid| Some(uid) != before);
    scene.bench.eventually("the standby's pod is not made again", again).await;
    whole(&scene, &[1]).await;
    assert_eq!(scene.life(0).await, primary, "the primary was started again");
    let tally = writer.finish(&scene.bench, DB).await;
    assert!(tally.longest_gap < Duration::from_secs(10), "{:?}", tally.longest_gap);
    tally.tell("standby's volume lost");
    scene.close().await;
}

/// Each server takes a while; the deadline is shorter than the whole, and longer than each step.
#[tokio::test(flavor = "multi_thread")]
async fn slow_but_real_progress_does_not_fail() {
    let Some(scene) = Scene::open("deadline with slow progress").await else { return };
    let mut spec = servers(4);
    spec["progressDeadlineSeconds"] = json!(30);
    let began = Instant::now();
    scene.apply(spec).await;
    let mut phases = BTreeSet::new();
    loop {
        let database = scene.bench.database(DB).await;
        phases.insert(database["status"]["phase"].as_str().unwrap_or_default().to_owned());
        let params = ListParams::default().labels(&format!("app.kubernetes.io/instance={DB}"));
        let pods = scene.pods().list(&params).await.expect("readable");
        let ready = pods.iter().filter(|pod| real::scene::pod_is_ready(pod)).count();
        if ready == 4 && is_ready(&database) {
            break;
        }
        let names: Vec<_> = pods.iter().map(ResourceExt::name_any).collect();
        assert!(began.elapsed() < 2 * PATIENCE, "{names:?}\n{}", scene.bench.describe().await);
        tokio::time::sleep(Duration::from_millis(200)).await; // poll: pods and phase
    }
    eprintln!("four servers in {:.1} s, deadline 30 s", began.elapsed().as_secs_f32());
    assert!(!phases.contains("Failed"), "{phases:?}");
    scene.close().await;
}
