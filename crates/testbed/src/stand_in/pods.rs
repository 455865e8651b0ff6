//! Brings one pod a step nearer to its fate.

use std::net::IpAddr;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::Outcome;
use super::status;

/// What is to be done about a pod now.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Put it on this node.
    Bind(String),
    /// Say that it finds no node.
    Reject(String),
    /// Report this fate, with this address.
    Report(Outcome, IpAddr),
    /// End its graceful deletion.
    Finish,
}

/// Takes the step. A pod that has gone or changed meanwhile is no error: the watch tells of it.
pub(crate) async fn take(client: &Client, pod: &Pod, step: Step) -> Result<()> {
    let namespace = pod.namespace().unwrap_or_default();
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let now = Time(Timestamp::now());
    let outcome = match step {
        Step::Bind(node) => bind(&pods, pod, &node).await,
        Step::Reject(message) => {
            write_status(&pods, pod, status::unschedulable(pod, &message, &now)).await
        }
        Step::Report(outcome, address) => {
            write_status(&pods, pod, status::desired(pod, &outcome, address, &now)).await
        }
        Step::Finish => finish(&pods, pod).await,
    };
    match outcome {
        Err(error) if is(&error, 404) || is(&error, 409) => Ok(()),
        other => other.with_context(|| format!("pod {namespace}/{}", pod.name_any())),
    }
}

async fn bind(pods: &Api<Pod>, pod: &Pod, node: &str) -> kube::Result<()> {
    let name = pod.name_any();
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "uid": pod.uid()},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    pods.create_subresource::<_, Value>("binding", &name, &PostParams::default(), &binding)
        .await
        .map(drop)
}

/// Writes the status if it differs; `resourceVersion` makes sure that it was made for this state of the pod.
async fn write_status(pods: &Api<Pod>, pod: &Pod, status: PodStatus) -> kube::Result<()> {
    if pod.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let patch = json!({"metadata": {"resourceVersion": pod.resource_version()}, "status": status});
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map(drop)
}

async fn finish(pods: &Api<Pod>, pod: &Pod) -> kube::Result<()> {
    let at_once = DeleteParams {
        preconditions: Some(Preconditions { uid: pod.uid(), ..Preconditions::default() }),
        ..DeleteParams::default().grace_period(0)
    };
    pods.delete(&pod.name_any(), &at_once).await.map(drop)
}

/// Whether the API server answered with this HTTP code.
pub(crate) fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
