//! Places pods on the node: the part of a scheduler that one node needs. A pod that cannot be placed is
//! told why, in the scheduler's words.

use crate::context::Context;
use crate::events::{Speaker, Tone};
use crate::status::now;
use crate::volume::claims::{self, ClaimState};
use crate::volume::place::claim_names;
use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How often pods that wait are looked at again.
const AGAIN: Duration = Duration::from_millis(500);

/// A pod that was seen, or the uid of one that is gone.
pub(crate) enum Seen {
    /// A pod, placed or not.
    Pod(Arc<Pod>),
    /// No longer there.
    Gone(String),
}

/// Places pods until the sender is gone.
pub(crate) async fn run(context: Arc<Context>, mut seen: mpsc::Receiver<Seen>) {
    let mut waiting: BTreeMap<String, (Arc<Pod>, Option<String>)> = BTreeMap::new();
    loop {
        let news = if waiting.is_empty() {
            seen.recv().await
        } else {
            tokio::select! {
                news = seen.recv() => news,
                () = tokio::time::sleep(AGAIN) => Some(Seen::Gone(String::new())),
            }
        };
        match news {
            None => return,
            Some(Seen::Pod(pod)) => {
                let uid = pod.metadata.uid.clone().unwrap_or_default();
                if waits_for_placement(&pod) {
                    let told = waiting.remove(&uid).and_then(|(_, told)| told);
                    waiting.insert(uid, (pod, told));
                } else {
                    waiting.remove(&uid);
                }
            }
            Some(Seen::Gone(uid)) => {
                waiting.remove(&uid);
            }
        }
        let uids: Vec<String> = waiting.keys().cloned().collect();
        for uid in uids {
            if let Some((pod, told)) = waiting.get_mut(&uid)
                && place(&context, pod, told).await
            {
                waiting.remove(&uid);
            }
        }
    }
}

/// A pod that no node has and that may be placed by the default scheduler.
fn waits_for_placement(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    spec.node_name.as_deref().unwrap_or_default().is_empty()
        && pod.metadata.deletion_timestamp.is_none()
        && spec.scheduling_gates.iter().flatten().next().is_none()
        && matches!(spec.scheduler_name.as_deref(), None | Some("" | "default-scheduler"))
}

/// Places one pod; true when nothing is left to do for it.
async fn place(context: &Context, pod: &Pod, told: &mut Option<String>) -> bool {
    match obstacle(context, pod).await {
        Ok(None) => bind(context, pod).await,
        Ok(Some(Obstacle::Provisioning)) => false,
        Ok(Some(Obstacle::Unsuited(why))) => {
            if told.as_ref() != Some(&why) {
                tell(context, pod, &why).await;
                *told = Some(why);
            }
            false
        }
        Err(error) => {
            tracing::debug!(%error, "a pod could not be looked at for placement");
            false
        }
    }
}

async fn obstacle(context: &Context, pod: &Pod) -> kube::Result<Option<Obstacle>> {
    let nodes: Api<Node> = Api::all(context.client.clone());
    let Some(node) = nodes.get_opt(&context.node_name).await? else {
        return Ok(Some(Obstacle::Unsuited("no nodes available to schedule pods".to_owned())));
    };
    if let Some(why) = unfit(pod, &node) {
        return Ok(Some(Obstacle::unsuited(why)));
    }
    let Some(spec) = &pod.spec else { return Ok(None) };
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    for claim in claim_names(spec, pod.metadata.name.as_deref().unwrap_or_default()) {
        match claims::look(&context.client, namespace, &claim).await? {
            ClaimState::Bound(_) => {}
            ClaimState::WaitingForConsumer => {
                claims::select_node(&context.client, namespace, &claim, &context.node_name).await?;
                return Ok(Some(Obstacle::Provisioning));
            }
            ClaimState::Waiting(why) => return Ok(Some(Obstacle::unsuited(&why))),
        }
    }
    Ok(None)
}

/// What keeps a pod from being placed.
enum Obstacle {
    /// Something that its user is told.
    Unsuited(String),
    /// The node is chosen and a volume is being made for it.
    Provisioning,
}

impl Obstacle {
    fn unsuited(why: &str) -> Self {
        Self::Unsuited(format!("0/1 nodes are available: {why}."))
    }
}

/// Why a node does not suit a pod, as far as node name, cordon and node selector say.
fn unfit(pod: &Pod, node: &Node) -> Option<&'static str> {
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true) {
        return Some("1 node(s) were unschedulable");
    }
    let labels = node.metadata.labels.as_ref();
    let wanted = pod.spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
    let fits = wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value));
    (!fits).then_some("1 node(s) didn't match Pod's node affinity/selector")
}

async fn bind(context: &Context, pod: &Pod) -> bool {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let binding = Binding {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(namespace.clone()),
            uid: pod.metadata.uid.clone(),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(context.node_name.clone()),
            ..ObjectReference::default()
        },
    };
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let answer: kube::Result<serde_json::Value> =
        pods.create_subresource("binding", &name, &PostParams::default(), &binding).await;
    match answer {
        Ok(_) => {
            let message =
                format!("Successfully assigned {namespace}/{name} to {}", context.node_name);
            context.events.pod(Speaker::Scheduler, pod, Tone::Normal, "Scheduled", message);
            true
        }
        // Somebody else placed it, or it is gone: the watch will tell.
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => true,
        Err(error) => {
            tracing::debug!(%error, pod = name, "a pod could not be bound yet");
            false
        }
    }
}

async fn tell(context: &Context, pod: &Pod, why: &str) {
    context.events.pod(Speaker::Scheduler, pod, Tone::Warning, "FailedScheduling", why.to_owned());
    let mut conditions =
        pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    conditions.retain(|condition| condition.type_ != "PodScheduled");
    conditions.push(PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        message: Some(why.to_owned()),
        last_transition_time: Some(Time(now())),
        ..PodCondition::default()
    });
    let patch = serde_json::json!({"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": conditions}});
    let pods: Api<Pod> = Api::namespaced(
        context.client.clone(),
        pod.metadata.namespace.as_deref().unwrap_or_default(),
    );
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    if let Err(error) = pods.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await
    {
        tracing::debug!(%error, pod = name, "the reason for not placing a pod could not be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_placed_only_where_it_may_run() {
        let node = |spec| {
            serde_json::from_value(json!({"metadata": {"labels": {"disk": "ssd"}}, "spec": spec}))
        };
        let node = |spec| -> Node { node(spec).expect("a node") };
        let pod = |selector| {
            serde_json::from_value(json!({"spec": {"containers": [], "nodeSelector": selector}}))
        };
        let pod = |selector| -> Pod { pod(selector).expect("a pod") };
        assert_eq!(unfit(&pod(json!({"disk": "ssd"})), &node(json!({}))), None);
        assert!(unfit(&pod(json!({"disk": "tape"})), &node(json!({}))).is_some());
        assert!(unfit(&pod(json!({})), &node(json!({"unschedulable": true}))).is_some());
    }

    #[test]
    fn gated_placed_and_foreign_pods_are_left_alone() {
        for (spec, expected) in [
            (json!({"containers": []}), true),
            (json!({"containers": [], "schedulerName": "default-scheduler"}), true),
            (json!({"containers": [], "nodeName": "x"}), false),
            (json!({"containers": [], "schedulerName": "mine"}), false),
            (json!({"containers": [], "schedulingGates": [{"name": "g"}]}), false),
        ] {
            let pod: Pod = serde_json::from_value(json!({"spec": spec})).expect("a pod");
            assert_eq!(waits_for_placement(&pod), expected, "{pod:?}");
        }
    }
}
