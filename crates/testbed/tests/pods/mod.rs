//! Pods of the node tests: what they run, and how a test waits for them and talks to them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{AttachParams, LogParams, PostParams};
use kube::runtime::wait::{Condition, await_condition};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

/// Far above the seconds that anything here takes, also on a machine that many builds share.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// The databases' password.
pub(crate) const PASSWORD: &str = "a password of this test";

/// A database's pod: ready when it answers over the network, which it does only after its initialisation.
pub(crate) fn database(name: &str) -> Value {
    let query = ["psql", "--host=127.0.0.1", "--username=postgres", "--command=SELECT 1"];
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "containers": [{
                "name": "postgres",
                "image": "postgres:15",
                "env": [
                    {"name": "POSTGRES_PASSWORD", "value": PASSWORD},
                    {"name": "PGDATA", "value": "/var/lib/postgresql/data/pgdata"},
                ],
                "ports": [{"name": "postgres", "containerPort": 5432}],
                "readinessProbe": {"exec": {"command": query}, "periodSeconds": 1},
            }],
        },
    })
}

/// Creates a pod and waits until it is ready.
pub(crate) async fn run(pods: &Api<Pod>, pod: Value) -> Result<()> {
    let pod: Pod = serde_json::from_value(pod)?;
    let name = pod.metadata.name.clone().context("a pod's name")?;
    pods.create(&PostParams::default(), &pod).await?;
    wait(pods, &name, |pod: Option<&Pod>| pod.is_some_and(is_ready)).await
}

/// Waits for a pod.
pub(crate) async fn wait(
    pods: &Api<Pod>,
    name: &str,
    condition: impl Condition<Pod>,
) -> Result<()> {
    let change = tokio::time::timeout(PATIENCE, await_condition(pods.clone(), name, condition));
    let outcome = change.await;
    if outcome.is_err() {
        let status = pods.get_opt(name).await?.and_then(|pod| pod.status);
        let log = pods.logs(name, &LogParams::default()).await.unwrap_or_default();
        anyhow::bail!("waited too long for pod {name}; its log:\n{log}\nits status: {status:?}");
    }
    outcome?.map(drop).map_err(Into::into)
}

/// Whether a pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|found| found.type_ == "Ready" && found.status == "True")
}

/// What a command in a pod says; it must succeed.
pub(crate) async fn exec(pods: &Api<Pod>, name: &str, command: &[&str]) -> Result<String> {
    let parameters = AttachParams::default().stdout(true).stderr(true);
    let mut process = pods.exec(name, command.to_vec(), &parameters).await?;
    let mut output = process.stdout().context("output was asked for")?;
    let mut errors = process.stderr().context("errors were asked for")?;
    let status = process.take_status().context("a status was asked for")?;
    let (mut said, mut complained) = (String::new(), String::new());
    tokio::try_join!(output.read_to_string(&mut said), errors.read_to_string(&mut complained))?;
    let status = status.await.context("the command ended without a status")?;
    ensure!(status.status.as_deref() == Some("Success"), "{command:?}: {complained} {status:?}");
    Ok(said.trim().to_owned())
}
