//! The node lifecycle controller: a node whose kubelet is silent becomes unknown, and its pods
//! not ready; five minutes later they are evicted.
//!
//! Must not run pods.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Core;
use crate::builtin::door::{Door, NODES, PODS};
use crate::builtin::{Controller, Model, Switch, after, earliest, field};

const GRACE_MILLIS: i64 = 50_000;

/// Since when each node has been silent.
#[derive(Default)]
pub(in crate::builtin) struct Nodes {
    silent: BTreeMap<String, Timestamp>,
}

impl Controller for Nodes {
    fn watches(&self) -> &'static [&'static str] {
        &["nodes", "pods"]
    }

    fn sync(&mut self, core: &mut Core, model: &mut Model) -> Option<Timestamp> {
        if model.kubelet == Switch::External {
            return None;
        }
        let mut door = Door::controller(core, "node-controller", "node-controller");
        let now = door.now();
        let mut wake = None;
        for node in door.list(NODES, None) {
            let name = field::name(&node).to_owned();
            if !model.down.contains(&name) {
                self.silent.remove(&name);
                restore(&mut door, node);
                continue;
            }
            let lost = after(*self.silent.entry(name).or_insert(now), GRACE_MILLIS);
            if lost > now {
                wake = earliest(wake, Some(lost));
                continue;
            }
            lose(&mut door, node);
            wake = earliest(wake, evict(&mut door, lost, now, &self.silent));
        }
        wake
    }
}

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

fn restore(door: &mut Door, mut node: Value) {
    if field::condition(&node, "Ready").is_none_or(|ready| ready["status"] == "True") {
        return;
    }
    set_ready(&mut node, "True", "KubeletReady", "kubelet is posting ready status", door.now());
    let Ok(mut node) = door.update_status(NODES, node) else { return };
    if let Some(taints) = node.pointer_mut("/spec/taints").and_then(Value::as_array_mut) {
        taints.retain(|taint| taint["key"] != UNREACHABLE);
        let empty = taints.is_empty();
        if empty {
            field::remove(&mut node, "/spec", "taints");
        }
        let _ = door.update(NODES, node);
    }
}

fn lose(door: &mut Door, mut node: Value) {
    if field::condition(&node, "Ready").is_some_and(|ready| ready["status"] == "Unknown") {
        return;
    }
    let now = door.now();
    let name = field::name(&node).to_owned();
    set_ready(
        &mut node,
        "Unknown",
        "NodeStatusUnknown",
        "Kubelet stopped posting node status.",
        now,
    );
    let Ok(mut node) = door.update_status(NODES, node) else { return };
    let mut taints = field::list(&node, "/spec/taints").to_vec();
    for effect in ["NoSchedule", "NoExecute"] {
        taints
            .push(json!({ "key": UNREACHABLE, "effect": effect, "timeAdded": field::stamp(now) }));
    }
    node["spec"]["taints"] = json!(taints);
    let _ = door.update(NODES, node.clone());
    door.event(
        &node,
        "Normal",
        "NodeNotReady",
        &format!("Node {name} status is now: NodeNotReady"),
    );
    for mut pod in door.list(PODS, None) {
        if field::text(&pod, "/spec/nodeName") != name || !field::is_true(&pod, "Ready") {
            continue;
        }
        if let Some(conditions) =
            pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut)
        {
            for condition in conditions.iter_mut().filter(|one| one["type"] == "Ready") {
                condition["status"] = json!("False");
                condition["lastTransitionTime"] = json!(field::stamp(now));
            }
        }
        let _ = door.update_status(PODS, pod.clone());
        door.event(&pod, "Warning", "NodeNotReady", "Node is not ready");
    }
}

/// Deletes pods that tolerate a lost node no longer; returns when the next one's time is up.
fn evict(
    door: &mut Door,
    lost: Timestamp,
    now: Timestamp,
    silent: &BTreeMap<String, Timestamp>,
) -> Option<Timestamp> {
    let mut wake = None;
    for pod in door.list(PODS, None) {
        let node = field::text(&pod, "/spec/nodeName");
        if field::deleting(&pod) || !silent.contains_key(node) {
            continue;
        }
        let tolerations = field::list(&pod, "/spec/tolerations").iter();
        let mut fitting = tolerations.filter(|one| {
            let key = field::text(one, "/key");
            let effect = field::text(one, "/effect");
            (key.is_empty() || key == UNREACHABLE) && matches!(effect, "" | "NoExecute")
        });
        let seconds = match fitting.next() {
            // The DefaultTolerationSeconds admission gives every pod five minutes.
            None => 300,
            Some(one) => match one.get("tolerationSeconds").and_then(Value::as_i64) {
                Some(seconds) => seconds,
                None => continue,
            },
        };
        let due = after(lost, seconds * 1000);
        if due > now {
            wake = earliest(wake, Some(due));
        } else {
            let _ = door.delete(PODS, &pod);
        }
    }
    wake
}

fn set_ready(node: &mut Value, status: &str, reason: &str, message: &str, now: Timestamp) {
    let mut conditions = field::list(node, "/status/conditions").to_vec();
    conditions.retain(|one| one["type"] != "Ready");
    conditions.push(json!({
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": field::stamp(now),
        "lastTransitionTime": field::stamp(now),
    }));
    node["status"]["conditions"] = json!(conditions);
}
