//! A pod that only asks, and questions from one pod to another.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::pods::{PASSWORD, PATIENCE, exec};

/// A pod from the same image that only waits for commands.
pub(crate) fn idler(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "idler",
                "image": "postgres:15",
                "command": ["sleep", "infinity"],
            }],
        },
    })
}

/// Asks a database at a host until it answers: a ready pod's name and address spread through the cluster in their
/// own time, as they do everywhere.
pub(crate) async fn query(pods: &Api<Pod>, name: &str, host: &str, sql: &str) -> Result<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match query_once(pods, name, host, sql).await {
            Err(_) if Instant::now() < deadline => {}
            outcome => return outcome,
        }
        // poll: the name server and kube-proxy, which announce nothing
        sleep(Duration::from_millis(200)).await;
    }
}

async fn query_once(pods: &Api<Pod>, name: &str, host: &str, sql: &str) -> Result<String> {
    let address = format!("host={host} user=postgres password='{PASSWORD}' connect_timeout=20");
    exec(pods, name, &["psql", &address, "-Atc", sql]).await
}
