//! The model scheduler: gives each pod a node, or says in the scheduler's words why it can't.
//!
//! Must not run pods or provision volumes; for `WaitForFirstConsumer` it only names the node.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::fit;
use crate::Core;
use crate::builtin::door::{CLAIMS, Door, NODES, PODS, STORAGE_CLASSES};
use crate::builtin::{Controller, Model, Switch, field};

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The scheduler; it holds no state of its own.
#[derive(Default)]
pub(in crate::builtin) struct Scheduler;

/// What the volumes of a pod allow.
enum Volumes {
    Bound,
    /// The claims wait for a node to be named; they are not bound yet.
    WaitForNode(Vec<Value>),
    /// The node is named, the volume is on its way.
    Provisioning,
    Refused(String),
}

impl Controller for Scheduler {
    fn watches(&self) -> &'static [&'static str] {
        &["pods", "nodes", "persistentvolumeclaims", "persistentvolumes", "storageclasses"]
    }

    fn sync(&mut self, core: &mut Core, model: &mut Model) -> Option<Timestamp> {
        if model.scheduler == Switch::External {
            return None;
        }
        let mut door = Door::component(core, "system:kube-scheduler", "default-scheduler");
        let mut pods = door.shared(PODS, None);
        pods.retain(|pod| {
            let gated = !field::list(pod, "/spec/schedulingGates").is_empty();
            let placed = !field::text(pod, "/spec/nodeName").is_empty();
            !placed && !gated && !field::deleting(pod)
        });
        // Oldest first, as the real queue does for equal priorities.
        pods.sort_by_key(|pod| field::text(pod, "/metadata/creationTimestamp").to_owned());
        for pod in &pods {
            schedule(&mut door, pod);
        }
        None
    }
}

fn schedule(door: &mut Door, pod: &Value) {
    let nodes = door.list(NODES, None);
    let claims = match volumes(door, pod) {
        Volumes::Bound => Vec::new(),
        Volumes::WaitForNode(claims) => claims,
        Volumes::Provisioning => return,
        Volumes::Refused(why) => {
            let total = nodes.len();
            let help = format!(
                "preemption: 0/{total} nodes are available: {total} Preemption is not helpful for \
                 scheduling."
            );
            let text = format!("0/{total} nodes are available: {why}. {help}");
            return refuse(door, pod, &text);
        }
    };
    if nodes.is_empty() {
        return refuse(door, pod, "no nodes available to schedule pods");
    }
    let pods = door.list(PODS, None);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut fitting = Vec::new();
    for node in &nodes {
        match fit::obstacle(pod, node, &pods, &nodes) {
            None => fitting.push(node),
            Some(reason) => *reasons.entry(reason).or_default() += 1,
        }
    }
    // The emptiest node, by name where equal.
    let load = |node: &Value| {
        let on = |one: &&Value| field::text(one, "/spec/nodeName") == field::name(node);
        pods.iter().filter(on).count()
    };
    let best = fitting.into_iter().min_by_key(|node| (load(node), field::name(node).to_owned()));
    let Some(node) = best else {
        return refuse(door, pod, &unfit(&reasons, nodes.len()));
    };
    if claims.is_empty() {
        return bind(door, pod, field::name(node));
    }
    for mut claim in claims {
        claim["metadata"]["annotations"][SELECTED_NODE] = json!(field::name(node));
        let _ = door.update(CLAIMS, claim);
    }
}

fn unfit(reasons: &BTreeMap<String, usize>, total: usize) -> String {
    let parts: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let victims = reasons.keys().any(|reason| reason.starts_with("Insufficient"));
    let (count, why) = match victims {
        true => (total, "No preemption victims found for incoming pod"),
        false => (total, "Preemption is not helpful for scheduling"),
    };
    format!(
        "0/{total} nodes are available: {}. no new claims to deallocate, preemption: 0/{total} \
         nodes are available: {count} {why}.",
        parts.join(", ")
    )
}

fn volumes(door: &Door, pod: &Value) -> Volumes {
    let mut waiting = Vec::new();
    let mut provisioning = false;
    for volume in field::list(pod, "/spec/volumes") {
        let name = field::text(volume, "/persistentVolumeClaim/claimName");
        if name.is_empty() {
            continue;
        }
        let Some(claim) = door.get(CLAIMS, field::namespace(pod), name) else {
            return Volumes::Refused(format!("persistentvolumeclaim \"{name}\" not found"));
        };
        if field::deleting(&claim) {
            return Volumes::Refused(format!("persistentvolumeclaim \"{name}\" is being deleted"));
        }
        if field::text(&claim, "/status/phase") == "Bound" {
            continue;
        }
        let class = door.get(STORAGE_CLASSES, "", field::text(&claim, "/spec/storageClassName"));
        let waits = class.is_some_and(|class| {
            field::text(&class, "/volumeBindingMode") == "WaitForFirstConsumer"
        });
        if !waits {
            return Volumes::Refused("pod has unbound immediate PersistentVolumeClaims".into());
        }
        let annotation = "/metadata/annotations/volume.kubernetes.io~1selected-node";
        match field::text(&claim, annotation) {
            "" => waiting.push(claim),
            _ => provisioning = true,
        }
    }
    match (waiting.is_empty(), provisioning) {
        (false, _) => Volumes::WaitForNode(waiting),
        (true, true) => Volumes::Provisioning,
        (true, false) => Volumes::Bound,
    }
}

fn bind(door: &mut Door, pod: &Value, node: &str) {
    if door.bind(pod, node).is_err() {
        return;
    }
    let text =
        format!("Successfully assigned {}/{} to {node}", field::namespace(pod), field::name(pod));
    door.event(pod, "Normal", "Scheduled", &text);
}

fn refuse(door: &mut Door, pod: &Value, message: &str) {
    let known = field::condition(pod, "PodScheduled");
    if known.is_some_and(|condition| condition["message"] == message) {
        return;
    }
    let mut refused = pod.clone();
    set_scheduled(&mut refused, "False", Some(message), door.now());
    let _ = door.update_status(PODS, refused);
    door.event(pod, "Warning", "FailedScheduling", message);
}

fn set_scheduled(pod: &mut Value, status: &str, message: Option<&str>, now: Timestamp) {
    let mut conditions = field::list(pod, "/status/conditions").to_vec();
    let before = field::condition(pod, "PodScheduled");
    let since = match before.filter(|one| one["status"] == status) {
        Some(one) => one["lastTransitionTime"].clone(),
        None => json!(field::stamp(now)),
    };
    conditions.retain(|one| one["type"] != "PodScheduled");
    let mut condition = json!({
        "type": "PodScheduled",
        "status": status,
        "lastProbeTime": null,
        "lastTransitionTime": since,
    });
    if let Some(generation) = pod.pointer("/metadata/generation") {
        condition["observedGeneration"] = generation.clone();
    }
    if let Some(message) = message {
        condition["reason"] = json!("Unschedulable");
        condition["message"] = json!(message);
    }
    conditions.push(condition);
    pod["status"]["conditions"] = json!(conditions);
}
