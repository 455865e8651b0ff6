//! The node's own object: made at the start, kept alive by a lease, removed at the end.

use crate::downward::NODE_ADDRESS;
use crate::machine;
use crate::status::now;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use std::time::Duration;

/// Namespace of node leases.
const LEASES: &str = "kube-node-lease";
/// How often the lease is renewed, and how long it holds (a kubelet's own numbers).
const RENEWAL: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;

/// Makes the Node object, or takes over one that an earlier run left, and writes its status.
pub(crate) async fn register(client: &Client, name: &str) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    if nodes.get_opt(name).await?.is_none() {
        match nodes.create(&PostParams::default(), &node(name)).await {
            Err(kube::Error::Api(answer)) if answer.is_already_exists() => {}
            outcome => drop(outcome?),
        }
    }
    let status = serde_json::json!({"status": status()});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

fn node(name: &str) -> Node {
    let os = if cfg!(target_os = "linux") { "linux" } else { std::env::consts::OS };
    serde_json::from_value(serde_json::json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": os,
            "kubernetes.io/arch": machine::architecture(),
            "steadfast.dev/local-node": "true",
        }},
        "spec": {},
    }))
    .expect("the literal above is a Node")
}

fn status() -> serde_json::Value {
    let resources = serde_json::json!({
        "cpu": machine::processors().to_string(),
        "memory": format!("{}Ki", machine::memory_bytes() >> 10),
        "ephemeral-storage": "100Gi",
        "pods": "110",
    });
    let moment = now().to_string();
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        serde_json::json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": moment, "lastTransitionTime": moment})
    };
    serde_json::json!({
        "capacity": resources,
        "allocatable": resources,
        "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS.to_string()}],
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "the node does not measure this"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "the node does not measure this"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "the node does not measure this"),
            condition("Ready", "True", "KubeletReady", "the node runs pods as processes of this machine"),
        ],
        "nodeInfo": {
            "architecture": machine::architecture(), "operatingSystem": std::env::consts::OS,
            "kubeletVersion": concat!("v", env!("CARGO_PKG_VERSION"), "-steadfast"), "kubeProxyVersion": "",
            "containerRuntimeVersion": concat!("localnode://", env!("CARGO_PKG_VERSION")),
            "bootID": "", "kernelVersion": "", "machineID": "", "osImage": "processes of this machine",
            "systemUUID": "",
        },
    })
}

/// Keeps the node's lease alive for as long as it is awaited. A cluster without leases is none the worse.
pub(crate) async fn keep_lease(client: Client, name: String) {
    let leases: Api<Lease> = Api::namespaced(client, LEASES);
    loop {
        let renewal = MicroTime(jiff::Timestamp::now());
        let patch = serde_json::json!({"spec": {"renewTime": renewal}});
        let renewed = leases.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
        if matches!(&renewed, Err(kube::Error::Api(answer)) if answer.is_not_found()) {
            let lease = serde_json::from_value::<Lease>(serde_json::json!({
                "metadata": {"name": name},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": renewal},
            }))
            .expect("the literal above is a Lease");
            if let Err(error) = leases.create(&PostParams::default(), &lease).await {
                tracing::debug!(%error, "the node's lease could not be made");
            }
        }
        tokio::time::sleep(RENEWAL).await;
    }
}

/// Removes the Node object and its lease.
pub(crate) async fn deregister(client: &Client, name: &str) {
    let nodes: Api<Node> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    if let Err(error) = nodes.delete(name, &DeleteParams::default()).await {
        tracing::debug!(%error, "the node's object could not be removed");
    }
    if let Err(error) = leases.delete(name, &DeleteParams::default()).await {
        tracing::debug!(%error, "the node's lease could not be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_literals_are_what_they_claim_to_be() {
        let mut object = serde_json::to_value(node("n")).expect("a node");
        object["status"] = status();
        let node: Node = serde_json::from_value(object).expect("a node with its status");
        let ready = node.status.and_then(|status| status.conditions).expect("conditions");
        assert!(
            ready.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
        );
    }
}
