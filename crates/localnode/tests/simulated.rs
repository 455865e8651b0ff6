//! The node under the simulated cluster, whose own kubelet and scheduler are switched off: a StatefulSet
//! comes up with a real server, is updated, and goes, as in the demo.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

mod bench;

use bench::{Bench, PATIENCE, ask, is_ready, require_postgres};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use localnode::LocalNode;
use serde_json::{Value, json};
use sim::builtin::Switch;
use sim::world::World;
use std::path::PathBuf;
use tokio::task::JoinHandle;

struct Simulated {
    bench: Bench,
    driver: JoinHandle<()>,
}

async fn simulated() -> Option<Simulated> {
    require_postgres()?;
    let world = World::with_clock(7, sim::clock::Clock::starting_at(jiff::Timestamp::now()));
    world.model(|model| {
        model.kubelet = Switch::External;
        model.scheduler = Switch::External;
    });
    let driver = world.spawn();
    let client = Client::new(world.cluster.service(), "default");
    let mut bench =
        Bench { client, namespace: "shop".to_owned(), node: None, state_dir: PathBuf::new() };
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "shop"}})).expect("a namespace");
    Api::all(bench.client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .expect("accepted");
    let node =
        LocalNode::start(bench.client.clone(), bench.options()).await.expect("the node starts");
    bench.state_dir = node.state_dir().to_path_buf();
    bench.node = Some(node);
    Some(Simulated { bench, driver })
}

fn stateful_set() -> Value {
    let mut pod = bench::postgres_pod("unused");
    pod["spec"]["volumes"] = json!([]);
    pod["spec"]["initContainers"] = json!([{"name": "guard", "image": "postgres:17",
        "command": ["sh", "-c", "postgres --version >/dev/termination-log"]}]);
    json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 1, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": pod["spec"]},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stateful_set_comes_up_is_updated_and_goes() {
    let Some(Simulated { mut bench, driver }) = simulated().await else { return };
    bench.create_secret("credentials", json!({"password": "right"})).await;
    let sets: Api<StatefulSet> = Api::namespaced(bench.client.clone(), "shop");
    let set: StatefulSet = serde_json::from_value(stateful_set()).expect("a StatefulSet");
    sets.create(&PostParams::default(), &set).await.expect("accepted");
    let first = bench.until_ready("db-0").await;
    let login = "user=postgres password=right";
    assert_eq!(ask(&first, login, "SELECT 'up'::text").await.as_deref(), Ok("up"));
    assert!(ask(&first, "user=postgres password=wrong", "SELECT ''::text").await.is_err());
    ask(&first, login, "SELECT set_config('a.b', 'c', false)").await.expect("the server answers");

    let patch = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "postgres", "args": ["-c", "max_connections=31"]}]}}}});
    sets.patch("db", &PatchParams::default(), &Patch::Strategic(patch)).await.expect("accepted");
    let uid = first.metadata.uid.clone();
    let second = bench
        .until("db-0", "replaced and Ready", |pod| pod.metadata.uid != uid && is_ready(pod))
        .await;
    assert_eq!(ask(&second, login, "SHOW max_connections").await.as_deref(), Ok("31"));
    assert_eq!(
        bench::address(&second),
        bench::address(&first),
        "a StatefulSet's pod keeps its address"
    );
    let log =
        bench.node.as_ref().and_then(|node| node.logs("shop", "db-0", "postgres")).expect("a log");
    assert!(log.contains("Skipping initialization"), "the volume was kept: {log}");

    sets.delete("db", &DeleteParams::default()).await.expect("accepted");
    bench.until_gone("db-0").await;
    let volumes = bench.state_dir.join("c");
    assert_eq!(std::fs::read_dir(&volumes).expect("there").count(), 1);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(bench.client.clone(), "shop");
    claims.delete("data-db-0", &DeleteParams::default()).await.expect("accepted");
    bench::wait_for("the volume's folder removed with its claim", async || {
        std::fs::read_dir(&volumes).expect("there").count() == 0
    })
    .await;
    let node = bench.node.take().expect("the node runs");
    tokio::time::timeout(PATIENCE, node.stop()).await.expect("the node stops");
    assert!(!bench.state_dir.exists());
    driver.abort();
}
