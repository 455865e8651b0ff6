//! A Database that is updated again and again, and what must not change by it.

use std::sync::Arc;

use kube::ResourceExt;
use serde_json::{Value, json};
use testbed::images::POSTGRES_15;

use super::scene::DB;
use super::{Bench, exercise, is_ready, kubelet_bench};

/// A bench on the shared cluster.
pub(crate) async fn bench() -> Option<Arc<Bench>> {
    kubelet_bench(&[POSTGRES_15]).await.map(Arc::new)
}

/// The exercise's spec with a setting that changes from update to update.
pub(crate) fn revision(number: usize) -> Value {
    let mut spec = exercise();
    spec["parameters"] = json!({"work_mem": format!("{}kB", 4096 + number)});
    spec
}

/// Waits until the Database is Ready for what is stored now.
pub(crate) async fn ready(bench: &Bench, what: &str) {
    bench.must(DB, what, is_ready).await;
}

/// Names of everything that the Database is made of.
pub(crate) async fn children(bench: &Bench) -> Vec<String> {
    let children = bench.children(DB).await;
    children.iter().map(|(kind, object)| format!("{kind}/{}", object.name_any())).collect()
}

/// uid and restarts of the primary's pod.
pub(crate) async fn pod(bench: &Bench) -> (String, u64) {
    let pod = bench.api("", "Pod", "pods").get(&format!("{DB}-0")).await.expect("a pod");
    let restarts = pod.data["status"]["containerStatuses"][0]["restartCount"].as_u64();
    (pod.uid().expect("a uid"), restarts.unwrap_or_default())
}
