//! The kubelet model: runs the pods that are assigned to model nodes and reports their status.
//!
//! Switched off with `Switch::External` when a real process plays the kubelet. Must not schedule.

mod container;
mod fit;
pub mod images;
mod inputs;
pub(super) mod nodes;
pub mod program;
mod report;
mod run;
pub(super) mod scheduler;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::door::{Door, NODES, PODS};
use super::{Controller, Model, Switch, earliest, field};
use crate::{Core, DeleteOptions};
use run::Run;

/// Pods that run, by uid.
#[derive(Default)]
pub(super) struct Kubelet {
    runs: BTreeMap<String, Run>,
}

impl Controller for Kubelet {
    fn watches(&self) -> &'static [&'static str] {
        &["pods", "nodes", "secrets", "configmaps", "persistentvolumeclaims"]
    }

    fn sync(&mut self, core: &mut Core, model: &mut Model) -> Option<Timestamp> {
        if model.kubelet == Switch::External {
            return None;
        }
        let pods = Door::component(core, "", "kubelet").shared(PODS, None);
        self.forget(&pods, model);
        let mut wake = None;
        for pod in &pods {
            let node = field::text(pod, "/spec/nodeName");
            if node.is_empty() || model.down.contains(node) {
                continue;
            }
            let user = format!("system:node:{node}");
            let mut door = Door::component(core, &user, "kubelet");
            wake = earliest(wake, self.one(&mut door, model, pod, node));
        }
        wake
    }
}

impl Kubelet {
    fn one(
        &mut self,
        door: &mut Door,
        model: &mut Model,
        pod: &Value,
        node: &str,
    ) -> Option<Timestamp> {
        let node = door.get(NODES, "", node)?;
        let host = field::list(&node, "/status/addresses").iter();
        let host = host.clone().find(|one| one["type"] == "InternalIP");
        let host = host.map_or("192.168.0.1", |one| field::text(one, "/address")).to_owned();
        let over = matches!(field::text(pod, "/status/phase"), "Failed" | "Succeeded");
        let now = door.now();
        let run = self
            .runs
            .entry(field::uid(pod).to_owned())
            .or_insert_with(|| Run::new(pod, &host, now));
        if over && !field::deleting(pod) {
            return None;
        }
        let wake = run.advance(door, model, pod);
        let status = report::status(pod, run, now);
        let stopped = run.stopped;
        if status != pod["status"] && !over {
            let mut written = pod.clone();
            written["status"] = status;
            // A write that loses a race is made again on the next change.
            let _ = door.update_status(PODS, written);
        }
        if stopped {
            let now = DeleteOptions { grace_period: Some(0), ..DeleteOptions::default() };
            let _ = door.delete_with(PODS, pod, now);
        }
        wake
    }

    /// Pods that are gone take their programs and their scratch volumes with them.
    fn forget(&mut self, pods: &[Arc<Value>], model: &mut Model) {
        let alive = |uid: &String| pods.iter().any(|pod| field::uid(pod) == uid);
        let gone: Vec<String> = self.runs.keys().filter(|uid| !alive(uid)).cloned().collect();
        for uid in gone {
            if let Some(mut run) = self.runs.remove(&uid) {
                run.abandon(model);
            }
            model.volumes.destroy_below(&uid);
        }
    }
}
