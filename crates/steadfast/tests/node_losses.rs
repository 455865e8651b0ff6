//! Troubles that need a second node: one that is reserved for others, and one that is lost. They take
//! turns on a cluster of their own.

mod real;

use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use real::scene::Scene;
use real::trouble::{IN_THE_MANIFEST, Trouble, play_on};
use real::{condition, exercise};
use serde_json::{Value, json};
use testbed::node::ClusterOptions;
use testbed::{Cluster, Options};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// The node that is reserved, and later lost.
const NODE: &str = "node-2";
/// Whom it is reserved for.
const RESERVED: &str = "example.com/reserved";

/// Two nodes, of which the second is reserved; its turn, until the guard is dropped. `None` after
/// saying `SKIPPED`.
async fn cluster() -> Option<(&'static Cluster, MutexGuard<'static, ()>)> {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    static TURN: Mutex<()> = Mutex::const_new(());
    if !testbed::node::require_or_skip(&[]).expect("the node's programs are required") {
        return None;
    }
    let turn = TURN.lock().await;
    Some((CLUSTER.get_or_init(start).await, turn))
}

async fn start() -> Cluster {
    // Half a minute and not five until a silent node's pods are to be deleted.
    let tolerated = ["not-ready", "unreachable"];
    let tolerated = tolerated.map(|what| format!("--default-{what}-toleration-seconds=5"));
    let plane = Options {
        api_server_arguments: tolerated.to_vec(),
        controller_manager_arguments: vec!["--node-monitor-grace-period=25s".to_owned()],
        ..ClusterOptions::default().plane
    };
    let options = ClusterOptions { nodes: 2, plane, ..ClusterOptions::default() };
    let cluster = Cluster::start(options).await.expect("the cluster starts");
    let client = cluster.plane().client().await.expect("a client");
    let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(client);
    let taint = json!([{"key": RESERVED, "effect": "NoSchedule"}]);
    let change = Patch::Strategic(json!({"spec": {"taints": taint}}));
    nodes.patch(NODE, &PatchParams::default(), &change).await.expect("tainted");
    cluster
}

/// A Database for the reserved node, with the leave to use it or without.
fn on_the_reserved_node(allowed: bool) -> Value {
    let mut spec = exercise();
    spec["podTemplate"] = json!({"nodeSelector": {"kubernetes.io/hostname": NODE}});
    if allowed {
        spec["podTemplate"]["tolerations"] = json!([{"key": RESERVED, "operator": "Exists"}]);
    }
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn unschedulable_for_a_taint() {
    let Some((cluster, _turn)) = cluster().await else { return };
    let scene = Scene::on(cluster, "unschedulable: taint").await;
    let trouble = Trouble {
        name: "unschedulable: taint",
        spec: |_| on_the_reserved_node(false),
        reason: "PodUnschedulable",
        words: &["untolerated taint"],
        corrected: |_| on_the_reserved_node(true),
        ..IN_THE_MANIFEST
    };
    play_on(scene, trouble).await;
}

/// Whether the Database says that its node is lost, with these words.
fn tells_of_the_loss(database: &Value, words: &str) -> bool {
    let ready = condition(database, "Ready");
    let message = ready["message"].as_str().unwrap_or_default();
    ready["reason"] == "NodeLost" && message.contains(NODE) && message.contains(words)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_node_is_told_of_and_its_server_comes_back_with_it() {
    let Some((cluster, _turn)) = cluster().await else { return };
    let scene = Scene::on(cluster, "node lost").await;
    scene.apply(on_the_reserved_node(true)).await;
    scene.ready("to come up").await;
    scene.write_the_row().await;
    let before = scene.pod(0).await.and_then(|pod| pod.uid());

    cluster.lose_node(NODE).expect("it runs");
    let told = scene.until("the loss", |d| tells_of_the_loss(d, "not heard from")).await;
    eprintln!("node lost: {}", condition(&told, "Ready")["message"]);
    // The cluster wants the pod away; nobody knows whether its server has ended, so it stays.
    let stays = "stays until the node answers";
    scene.until("the eviction", |d| tells_of_the_loss(d, stays)).await;
    assert_eq!(scene.pod(0).await.and_then(|pod| pod.uid()), before, "nothing took its place");

    cluster.return_node(NODE).await.expect("it comes back");
    let anew = async || scene.pod(0).await.is_some_and(|pod| pod.uid() != before);
    scene.bench.eventually("the old pod is still there", anew).await;
    scene.ready("after the return").await;
    scene.close_with_the_row().await;
}
