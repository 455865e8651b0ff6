//! Node objects without a machine behind them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::pods::is;

/// Label of our nodes; only pods on such nodes are cared for.
pub(crate) const LABEL: &str = "steadfast.dev/stand-in";

/// Creates a ready node; one that is there already stays as it is.
pub(crate) async fn create(
    client: &Client,
    name: &str,
    labels: &BTreeMap<String, String>,
) -> Result<()> {
    let mut all = labels.clone();
    for (key, value) in [
        (LABEL, "true"),
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
    ] {
        all.entry(key.to_owned()).or_insert_with(|| value.to_owned());
    }
    let node: Node = serde_json::from_value(json!({"metadata": {"name": name, "labels": all}}))
        .context("write a node")?;
    let nodes = Api::<Node>::all(client.clone());
    match nodes.create(&PostParams::default(), &node).await {
        Ok(_) => {}
        Err(error) if is(&error, 409) => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("create node {name}")),
    }
    report(client, name, true).await?;
    // The API server taints every new node as not ready; the controller that lifts the taint does not run.
    let untainted = json!({"spec": {"taints": null}});
    nodes
        .patch(name, &PatchParams::default(), &Patch::Merge(untainted))
        .await
        .with_context(|| format!("lift the taint of node {name}"))
        .map(drop)
}

/// Reports a node's condition, as its kubelet (or its absence) would.
pub(crate) async fn report(client: &Client, name: &str, ready: bool) -> Result<()> {
    let nodes = Api::<Node>::all(client.clone());
    nodes
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status(name, ready)))
        .await
        .with_context(|| format!("report the status of node {name}"))
        .map(drop)
}

fn status(name: &str, ready: bool) -> Value {
    let (status, reason) =
        if ready { ("True", "KubeletReady") } else { ("Unknown", "NodeStatusUnknown") };
    let room = json!({"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000"});
    let now = Timestamp::now();
    json!({"status": {
        "capacity": room,
        "allocatable": room,
        "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": "192.0.2.1"}],
        "conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": "a stand-in, no machine",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }],
        "nodeInfo": {
            "architecture": "amd64", "operatingSystem": "linux", "osImage": "stand-in", "machineID": "",
            "systemUUID": "", "bootID": "", "kernelVersion": "", "kubeProxyVersion": "",
            "containerRuntimeVersion": "stand-in://1", "kubeletVersion": crate::binaries::KUBERNETES_VERSION,
        },
    }})
}
