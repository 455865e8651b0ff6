//! The end of a pod: its containers are stopped, then its object is removed, then its files.

use super::{Wanted, Worker};
use crate::events::Tone;
use crate::probe_run::execute;
use crate::process::sweep;
use crate::record::Situation;
use crate::status::template;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LifecycleHandler, Pod};
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use std::sync::Arc;
use std::time::Duration;

/// Grace period of a pod that names none (API default).
const DEFAULT_GRACE: Duration = Duration::from_secs(30);
/// Shortest time that a container gets to stop, however it is asked.
const LEAST_GRACE: Duration = Duration::from_secs(2);

impl Worker {
    pub(super) fn template_grace(&self) -> Duration {
        let seconds = self.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        seconds
            .map_or(DEFAULT_GRACE, |seconds| Duration::from_secs(seconds.max(0).unsigned_abs()))
            .max(LEAST_GRACE)
    }

    /// The grace of a pod whose object says no more: what it last said, never long.
    pub(super) fn grace_without_object(&self) -> Duration {
        match self.pod.metadata.deletion_grace_period_seconds {
            Some(seconds) => {
                Duration::from_secs(seconds.max(0).unsigned_abs()).clamp(LEAST_GRACE, DEFAULT_GRACE)
            }
            None => self.template_grace().min(DEFAULT_GRACE),
        }
    }

    /// One step towards a deleted pod's end.
    pub(super) async fn end_pod(&mut self) {
        let until =
            self.pod.metadata.deletion_timestamp.as_ref().map_or(Timestamp::now(), |time| time.0);
        let left = Duration::try_from(until.duration_since(Timestamp::now())).unwrap_or_default();
        if !self.stop_all(left.max(LEAST_GRACE)) {
            self.report().await;
            return;
        }
        if self.deleted {
            return;
        }
        self.sweep_volumes().await;
        self.report().await;
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), self.namespace());
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: self.pod.metadata.uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match pods.delete(self.name(), &parameters).await {
            Ok(_) => self.deleted = true,
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {
                self.deleted = true
            }
            Err(error) => {
                tracing::debug!(%error, pod = self.name(), "a pod could not be deleted yet");
                self.retry = true;
            }
        }
    }

    /// Orders every container to stop; true once none runs.
    pub(super) fn stop_all(&mut self, grace: Duration) -> bool {
        for index in 0..self.live.len() {
            if self.live[index].as_ref().is_some_and(|live| !live.stopping) {
                let name = self.record.containers[index].name.clone();
                let message = format!("Stopping container {name}");
                self.context.events.container(&self.pod, &name, Tone::Normal, "Killing", message);
                self.stop_container(index, grace);
            }
        }
        self.live.iter().all(Option::is_none)
    }

    /// Orders one container to stop, its preStop hook first.
    pub(super) fn stop_container(&mut self, index: usize, grace: Duration) {
        let hook = template(&self.pod, &self.record.containers[index].name)
            .and_then(|container| container.lifecycle.as_ref()?.pre_stop.clone());
        let Some(live) = &mut self.live[index] else { return };
        live.stopping = true;
        if let Some(probes) = live.probes.take() {
            probes.abort();
        }
        if let Situation::Running { ready, .. } = &mut self.record.containers[index].situation {
            *ready = false;
        }
        let Some(hook) = hook else {
            live.stop.give(grace);
            return;
        };
        let (context, assembly) = (Arc::clone(&self.context), Arc::clone(&live.assembly));
        let stop = live.stop.clone();
        tokio::spawn(async move {
            let begun = tokio::time::Instant::now();
            run_hook(&context, &assembly, &hook, grace).await;
            stop.give(grace.saturating_sub(begun.elapsed()).max(LEAST_GRACE));
        });
    }

    async fn sweep_volumes(&self) {
        sweep(&self.folder).await;
        for (_, folder) in self.volumes.iter().flat_map(|volumes| volumes.0.values()) {
            sweep(folder).await;
        }
    }

    /// Removes the pod's traces from this machine.
    pub(super) async fn clean_up(&mut self) {
        self.live.clear();
        self.sweep_volumes().await;
        let (namespace, name) = (self.namespace().to_owned(), self.name().to_owned());
        self.context
            .windows()
            .retain(|(ns, pod, _), _| (ns.as_str(), pod.as_str()) != (&namespace, &name));
        let owners = self.pod.metadata.owner_references.iter().flatten();
        let comes_back = owners.into_iter().any(|owner| owner.kind == "StatefulSet");
        if !comes_back || matches!(*self.wanted.borrow(), Wanted::NodeStops) {
            self.context.addresses().release(&format!("{namespace}/{name}"));
        }
        if let Err(error) = std::fs::remove_dir_all(&self.folder)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, folder = %self.folder.display(), "a pod's folder could not be removed");
        }
    }
}

async fn run_hook(
    context: &crate::context::Context,
    assembly: &crate::assembly::Assembly,
    hook: &LifecycleHandler,
    grace: Duration,
) {
    if let Some(sleep) = &hook.sleep {
        let wanted = Duration::from_secs(sleep.seconds.max(0).unsigned_abs());
        tokio::time::sleep(wanted.min(grace)).await;
    }
    if let Some(exec) = &hook.exec {
        let words = exec.command.as_deref().unwrap_or_default();
        if let Err(error) = execute(context, assembly, words, grace).await {
            tracing::debug!(error, "a preStop hook failed");
        }
    }
}
