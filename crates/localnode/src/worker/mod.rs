//! The worker of one pod: the only task that changes what the node knows of it. Each pass looks at the
//! pod, does what is due, and reports; between passes it waits for whatever can change the picture.

mod containers;
mod ending;
mod reporting;
mod storage;

use crate::assembly::Assembly;
use crate::context::Context;
use crate::next::{self, RestartPolicy};
use crate::probe_run::ProbeReport;
use crate::record::{ContainerRecord, Ending, Role};
use crate::sources::Sources;
use crate::status::{self, PodRecord};
use crate::stop::StopOrder;
use crate::volume::place::PodVolumes;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

/// How soon something that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// What the cluster wants of a pod.
#[derive(Debug, Clone)]
pub(crate) enum Wanted {
    /// The pod as last seen.
    Pod(Arc<Pod>),
    /// Its object is gone.
    Gone,
    /// The node stops; the pod's object is left alone.
    NodeStops,
}

/// News from the tasks of a pod's containers.
enum News {
    Ended(usize, Ending),
    Probed(usize, u32, ProbeReport),
}

/// A container's tasks. Dropping them ends the probes and, through the process's own drop, the process.
struct Live {
    stop: StopOrder,
    stopping: bool,
    task: JoinHandle<()>,
    probes: Option<JoinHandle<()>>,
    assembly: Arc<Assembly>,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(probes) = &self.probes {
            probes.abort();
        }
    }
}

/// Runs one pod.
pub(crate) struct Worker {
    context: Arc<Context>,
    pod: Arc<Pod>,
    wanted: watch::Receiver<Wanted>,
    sources_changed: Arc<Notify>,
    folder: PathBuf,
    record: PodRecord,
    volumes: Option<PodVolumes>,
    sources: Sources,
    live: Vec<Option<Live>>,
    news: (mpsc::UnboundedSender<News>, mpsc::UnboundedReceiver<News>),
    written: Option<PodStatus>,
    complaint: Option<String>,
    deleted: bool,
    retry: bool,
    refresh: bool,
}

impl Worker {
    /// A worker for a pod that was given to this node. `number` names its folder.
    pub(crate) fn new(
        context: Arc<Context>,
        pod: Arc<Pod>,
        wanted: watch::Receiver<Wanted>,
        sources_changed: Arc<Notify>,
        number: u32,
    ) -> Self {
        let containers = records(pod.spec.as_ref());
        let policy =
            RestartPolicy::parse(pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()));
        let folder = context.state_dir.join("p").join(number.to_string());
        Self {
            live: containers.iter().map(|_| None).collect(),
            record: PodRecord { containers, address: None, accepted: status::now(), policy },
            volumes: None,
            sources: Sources::default(),
            // Bounded by the probes' periods: the worker empties it at every turn.
            news: mpsc::unbounded_channel(),
            written: None,
            complaint: None,
            deleted: false,
            retry: false,
            refresh: false,
            context,
            pod,
            wanted,
            sources_changed,
            folder,
        }
    }

    /// Works until the pod is gone or the node stops, and leaves nothing behind.
    pub(crate) async fn run(mut self) {
        while !self.pass().await {
            self.wait().await;
        }
        self.clean_up().await;
    }

    /// One look at everything. Returns true when the work is over.
    async fn pass(&mut self) -> bool {
        self.retry = false;
        let wanted = self.wanted.borrow_and_update().clone();
        match wanted {
            Wanted::Gone | Wanted::NodeStops => return self.stop_all(self.grace_without_object()),
            Wanted::Pod(pod) if is_older(&pod, &self.pod) => {}
            Wanted::Pod(pod) => self.accept(pod),
        }
        if self.pod.metadata.deletion_timestamp.is_some() {
            self.end_pod().await;
            return false;
        }
        if self.was_over_before() {
            return false;
        }
        if !next::phase(self.record.policy, &self.record.containers).is_final()
            && self.storage_is_ready().await
        {
            let due = next::to_start(self.record.policy, &self.record.containers, Timestamp::now());
            for index in due {
                self.start(index);
            }
        }
        self.report().await;
        false
    }

    /// Takes over a newer state of the pod. A container that waits for an image need not wait for one that
    /// is no longer asked for.
    fn accept(&mut self, pod: Arc<Pod>) {
        let image =
            |pod: &Pod, name: &str| status::template(pod, name).and_then(|c| c.image.clone());
        for container in self.record.containers.iter_mut().filter(|c| c.waits_for_image()) {
            if image(&pod, &container.name) != image(&self.pod, &container.name) {
                container.not_before = None;
            }
        }
        self.pod = pod;
    }

    /// A pod that came to its end on an earlier run of this node is not run again.
    fn was_over_before(&self) -> bool {
        let phase = self.pod.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
            && self.record.containers.iter().all(|c| c.run == 0)
    }

    /// Waits for news, a change of the pod or its sources, or a moment that matters.
    async fn wait(&mut self) {
        let pause = self.pause();
        let news = tokio::select! {
            news = self.news.1.recv() => news,
            _ = self.wanted.changed() => None,
            () = self.sources_changed.notified() => {
                self.refresh_sources();
                None
            }
            () = tokio::time::sleep(pause) => None,
        };
        let mut next = news;
        while let Some(news) = next {
            self.hear(news);
            next = self.news.1.try_recv().ok();
        }
    }

    fn pause(&self) -> Duration {
        let now = Timestamp::now();
        let moments =
            self.record.containers.iter().filter(|c| !c.is_running()).filter_map(|c| c.not_before);
        let next = moments
            .filter_map(|moment| Duration::try_from(moment.duration_since(now)).ok())
            .min()
            .map_or(Duration::from_secs(60), |pause| pause.max(Duration::from_millis(20)));
        if self.retry { next.min(RETRY) } else { next }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Ended(index, ending) => self.container_ended(index, ending),
            News::Probed(index, run, report) => {
                if self.record.containers[index].run == run {
                    self.container_probed(index, report);
                }
            }
        }
    }

    fn spec(&self) -> PodSpec {
        self.pod.spec.clone().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.pod.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.pod.metadata.name.as_deref().unwrap_or_default()
    }
}

/// Whether a watch shows a pod as it was before this node's own last write to it.
fn is_older(seen: &Pod, known: &Pod) -> bool {
    let version = |pod: &Pod| {
        pod.metadata.resource_version.as_deref().and_then(|text| text.parse::<u64>().ok())
    };
    matches!((version(seen), version(known)), (Some(seen), Some(known)) if seen < known)
}

/// Init containers first, as they are started.
fn records(spec: Option<&PodSpec>) -> Vec<ContainerRecord> {
    let Some(spec) = spec else { return Vec::new() };
    let inits = spec.init_containers.iter().flatten().map(|container| {
        let sidecar = container.restart_policy.as_deref() == Some("Always");
        ContainerRecord::new(&container.name, if sidecar { Role::Sidecar } else { Role::Init })
    });
    let mut records: Vec<_> = inits.collect();
    let first_reason = if records.is_empty() { "ContainerCreating" } else { "PodInitializing" };
    records.extend(spec.containers.iter().map(|container| {
        let mut record = ContainerRecord::new(&container.name, Role::App);
        record.wait_for(first_reason, String::new());
        record
    }));
    records
}
