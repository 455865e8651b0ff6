//! However a node ends, its processes end with it and its files go: by `stop` (tested in `postgres.rs`),
//! by drop, by a panic, and by SIGKILL of the process that holds it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

mod bench;

use bench::{Bench, bench, bench_without_node, postgres_pod, processes_below, wait_for};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use localnode::LocalNode;
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

const HOST_KUBECONFIG: &str = "LOCALNODE_TEST_KUBECONFIG";
const HOST_NAMESPACE: &str = "LOCALNODE_TEST_NAMESPACE";
const HOST_FOLDER: &str = "LOCALNODE_TEST_FOLDER";

async fn with_a_running_database() -> Option<Bench> {
    let bench = bench().await?;
    bench.create_secret("credentials", json!({"password": "right"})).await;
    bench.create_pod(postgres_pod("db")).await;
    bench.until_ready("db").await;
    assert!(processes_below(&bench.state_dir).len() > 3, "a server and its children run");
    Some(bench)
}

/// Names of POSIX shared memory of PostgreSQL servers, which a killed server would leave.
fn shared_memory_of(folder: &std::path::Path) -> Option<String> {
    let pid_file =
        std::fs::read_dir(folder.join("p")).ok()?.filter_map(Result::ok).find_map(|pod| {
            std::fs::read_to_string(pod.path().join("v0/pgdata/postmaster.pid")).ok()
        })?;
    // Line 7: key and id of the System V segment that marks the data folder as in use.
    pid_file.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)).map(str::to_owned)
}

fn segment_exists(id: &str) -> bool {
    let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    table.lines().any(|line| line.split_whitespace().nth(1) == Some(id))
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_node_leaves_nothing() {
    let Some(mut bench) = with_a_running_database().await else { return };
    let segment = shared_memory_of(&bench.state_dir).expect("the server's segment is known");
    assert!(segment_exists(&segment));
    drop(bench.node.take());
    assert_eq!(processes_below(&bench.state_dir), Vec::<String>::new());
    assert!(!bench.state_dir.exists());
    assert!(!segment_exists(&segment), "the server ended by itself and freed its shared memory");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_leaves_nothing() {
    let Some(mut bench) = with_a_running_database().await else { return };
    let node = bench.node.take().expect("the node runs");
    let panicked = tokio::spawn(async move {
        assert!(
            node.state_dir().as_os_str().is_empty(),
            "this panics on purpose with the node in hand"
        );
    })
    .await;
    assert!(panicked.is_err_and(|error| error.is_panic()));
    assert_eq!(processes_below(&bench.state_dir), Vec::<String>::new());
    assert!(!bench.state_dir.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_force_deleted_while_the_node_looks_on_is_stopped() {
    let Some(bench) = with_a_running_database().await else { return };
    let force = kube::api::DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
    bench.pods().delete("db", &force).await.expect("the pod is deleted");
    wait_for("no process of the pod", async || {
        processes_below(&bench.state_dir.join("p")).is_empty()
    })
    .await;
    wait_for("no file of the pod", async || {
        std::fs::read_dir(bench.state_dir.join("p")).is_ok_and(|entries| entries.count() == 0)
    })
    .await;
}

/// Plays both parts: the test starts this program again, for this one test, as the host of a node, and
/// kills it when its database is ready.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_host_leaves_nothing() {
    if let Ok(kubeconfig) = std::env::var(HOST_KUBECONFIG) {
        return host(&kubeconfig).await;
    }
    let Some(bench) = bench_without_node().await else { return };
    let plane = testbed::ControlPlane::shared().await.expect("the control plane runs");
    let folder = PathBuf::from(format!("/tmp/sfkill{}", std::process::id()));
    let mut child = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "a_killed_host_leaves_nothing"])
        .env(HOST_KUBECONFIG, plane.kubeconfig_path())
        .env(HOST_NAMESPACE, &bench.namespace)
        .env(HOST_FOLDER, &folder)
        .spawn()
        .expect("the host starts");
    bench.create_secret("credentials", json!({"password": "right"})).await;
    bench.create_pod(postgres_pod("db")).await;
    bench.until_ready("db").await;
    assert!(processes_below(&folder).len() > 3, "a server and its children run");
    child.kill().expect("the host is killed");
    assert_eq!(child.wait().expect("the host ended").signal(), Some(9));
    wait_for("no file of the killed node", async || !folder.exists()).await;
    assert_eq!(processes_below(&folder), Vec::<String>::new());
}

async fn host(kubeconfig: &str) {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("a config");
    let bench = Bench {
        client: Client::try_from(config).expect("a client"),
        namespace: std::env::var(HOST_NAMESPACE).expect("set by the test"),
        node: None,
        state_dir: PathBuf::new(),
    };
    let mut options = bench.options();
    options.state_dir = std::env::var_os(HOST_FOLDER).map(PathBuf::from);
    let _node = LocalNode::start(bench.client.clone(), options).await.expect("the node starts");
    std::future::pending::<()>().await;
}
