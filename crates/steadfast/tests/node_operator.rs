//! The operator in the cluster, as docs/install.md has it: the printed manifests applied with
//! kubectl, in a namespace where PodSecurity is restricted, and nobody else who would do its work.

mod real;

use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use real::kubectl::Kubectl;
use real::scene::{DB, pod_is_ready};
use real::{Bench, exercise, is_ready, kubelet_bench};
use serde_json::json;
use testbed::images::{OPERATOR, POSTGRES_15};
use tokio::process::Command;

/// The namespace that the manifests make.
const NAMESPACE: &str = "steadfast";

/// What the program prints to be installed.
async fn printed_manifests() -> Vec<u8> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    program.args(["manifests", "--namespace", NAMESPACE, "--image", OPERATOR.name()]);
    let output = program.output().await.expect("the program runs");
    assert!(output.status.success());
    output.stdout
}

fn operators(bench: &Bench) -> Api<Pod> {
    Api::namespaced(bench.client.clone(), NAMESPACE)
}

/// The one pod of the operator that is ready and is not `other`.
async fn running(bench: &Bench, other: Option<&str>) -> Option<Pod> {
    let pods = operators(bench).list(&ListParams::default()).await.expect("readable");
    let fits = |pod: &Pod| pod_is_ready(pod) && pod.uid().as_deref() != other;
    let mut pods: Vec<Pod> = pods.into_iter().collect();
    if pods.len() == 1 { pods.pop().filter(fits) } else { None }
}

/// The namespace lets nobody in who asks for more than the operator does.
async fn assert_restricted(bench: &Bench) {
    let pod = serde_json::from_value(json!({"metadata": {"name": "root"}, "spec": {
        "containers": [{"name": "root", "image": OPERATOR.name()}]}}));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let refused = operators(bench).create(&dry, &pod.expect("a pod")).await;
    let refused = refused.expect_err("a pod that may be root is let in").to_string();
    assert!(refused.contains("violates PodSecurity \"restricted"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_installed_operator_makes_a_database_ready_and_comes_back_when_its_pod_is_gone() {
    let Some(bench) = kubelet_bench(&[POSTGRES_15]).await else { return };
    let cluster = testbed::Cluster::shared().await.expect("the cluster runs");
    let image = OPERATOR.with_program(Path::new(env!("CARGO_BIN_EXE_steadfast")));
    cluster.import(&image.expect("the image is built")).await.expect("the image is imported");
    let kubectl = Kubectl::of(&bench).await;

    kubectl.run(&["apply", "--server-side", "-f", "-"], &printed_manifests().await).await;
    let rollout = ["-n", NAMESPACE, "rollout", "status", "deployment/steadfast", "--timeout=180s"];
    kubectl.run(&rollout, b"").await;
    assert_restricted(&bench).await;
    let first = running(&bench, None).await.expect("one pod of the operator");

    bench.apply_database(DB, exercise()).await;
    bench.must(DB, "to come up by the installed operator", is_ready).await;

    operators(&bench).delete(&first.name_any(), &DeleteParams::default()).await.expect("deletable");
    let back = async || running(&bench, first.uid().as_deref()).await.is_some();
    bench.eventually("the operator does not come back", back).await;
    let mut spec = exercise();
    spec["parameters"] = json!({"work_mem": "8MB"});
    let wanted = bench.apply_database(DB, spec).await["metadata"]["generation"].clone();
    let taken_up = |d: &serde_json::Value| is_ready(d) && d["metadata"]["generation"] == wanted;
    bench.must(DB, "the change to be taken up", taken_up).await;

    let log = kubectl.run(&["-n", NAMESPACE, "logs", "deployment/steadfast"], b"").await;
    assert!(log.lines().all(|line| line.starts_with('{')), "a line is not JSON: {log}");
    bench.strike().await;
}
