//! The stand-in's loop: watches, decides for each object what is due, does it, tries again what failed.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod, PodSpec};
use k8s_openapi::{Metadata, NamespaceResourceScope};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::sleep;
use tracing::warn;

use super::script::{Key, Script, key};
use super::tracked::Tracked;
use super::{Outcome, StandInOptions, claims, node, place, pods};

/// Pause before a failed write is tried again.
const RETRY: Duration = Duration::from_millis(200);

type Watch<K> = BoxStream<'static, Result<Event<K>, watcher::Error>>;

/// All that the loop knows.
pub(crate) struct Worker {
    client: Client,
    options: StandInOptions,
    script: Arc<Script>,
    pods: Tracked<Pod>,
    claims: Tracked<PersistentVolumeClaim>,
    volumes: Tracked<PersistentVolume>,
    nodes: Tracked<Node>,
    // By uid: a pod keeps its address, and a new pod of the same name gets a new one.
    addresses: BTreeMap<String, IpAddr>,
}

impl Worker {
    pub(crate) fn new(client: Client, options: StandInOptions, script: Arc<Script>) -> Self {
        Self {
            client,
            options,
            script,
            pods: Tracked::default(),
            claims: Tracked::default(),
            volumes: Tracked::default(),
            nodes: Tracked::default(),
            addresses: BTreeMap::new(),
        }
    }

    /// Works until it is aborted.
    pub(crate) async fn run(mut self) {
        let mut pods: Watch<Pod> = watch(self.namespaced(), watcher::Config::default());
        let mut claims: Watch<PersistentVolumeClaim> =
            watch(self.namespaced(), watcher::Config::default());
        let mut volumes: Watch<PersistentVolume> =
            watch(Api::all(self.client.clone()), watcher::Config::default());
        let ours = watcher::Config::default().labels(node::LABEL);
        let mut nodes: Watch<Node> = watch(Api::all(self.client.clone()), ours);
        let script = Arc::clone(&self.script);
        let mut failed = false;
        loop {
            tokio::select! {
                Some(event) = pods.next() => note(&mut self.pods, event),
                Some(event) = claims.next() => note(&mut self.claims, event),
                Some(event) = volumes.next() => note(&mut self.volumes, event),
                Some(event) = nodes.next() => note(&mut self.nodes, event),
                () = script.changed() => {}
                () = sleep(RETRY), if failed => {}
            }
            failed = !self.settle().await;
        }
    }

    fn namespaced<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match &self.options.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    /// Looks at everything; false if something is to be tried again. A settled object costs no request.
    async fn settle(&mut self) -> bool {
        let mut fine = true;
        if !self.script.holds_claims() {
            for claim in self.claims.all() {
                fine &= report(claims::settle(&self.client, claim).await);
            }
        }
        for volume in self.volumes.all().filter(|volume| self.cares_for(volume)) {
            fine &= report(claims::clear(&self.client, volume).await);
        }
        let due: Vec<(Key, Outcome)> =
            self.pods.all().map(|pod| (key(pod), self.script.outcome(pod))).collect();
        for (pod, outcome) in due {
            let address = self.address(&pod);
            let Some(pod) = self.pods.get(&pod) else { continue };
            if let Some(step) = self.step(pod, outcome, address) {
                fine &= report(pods::take(&self.client, pod, step).await);
            }
        }
        fine
    }

    /// What is due for a pod, if anything.
    fn step(&self, pod: &Pod, outcome: Outcome, address: IpAddr) -> Option<pods::Step> {
        let spec = pod.spec.as_ref()?;
        let node = spec.node_name.as_ref();
        if outcome == Outcome::Untouched || node.is_some_and(|node| !self.owns(node)) {
            return None;
        }
        if pod.metadata.deletion_timestamp.is_some() {
            // Grace zero and still there: its finalizers keep it, and another delete would change nothing.
            let finished = pod.metadata.deletion_grace_period_seconds == Some(0);
            return (!finished && !self.script.holds_termination(pod))
                .then_some(pods::Step::Finish);
        }
        if node.is_some() {
            // Who has a node has been scheduled; that cannot be taken back.
            let outcome = if matches!(outcome, Outcome::Unschedulable { .. }) {
                Outcome::Starting
            } else {
                outcome
            };
            return Some(pods::Step::Report(outcome, address));
        }
        if spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
            return None;
        }
        if let Outcome::Unschedulable { message } = outcome {
            return Some(pods::Step::Reject(message));
        }
        if let Some(claim) = self.missing_claim(pod, spec) {
            return Some(pods::Step::Reject(format!(
                "persistentvolumeclaim {claim:?} is not bound"
            )));
        }
        Some(place::choose(pod, self.nodes.all()).map_or_else(pods::Step::Reject, pods::Step::Bind))
    }

    /// The first claim of a pod that is missing or not bound.
    fn missing_claim(&self, pod: &Pod, spec: &PodSpec) -> Option<String> {
        let namespace = pod.namespace().unwrap_or_default();
        let names = spec.volumes.iter().flatten().filter_map(|volume| {
            match &volume.persistent_volume_claim {
                Some(source) => Some(source.claim_name.clone()),
                None => {
                    volume.ephemeral.as_ref().map(|_| format!("{}-{}", pod.name_any(), volume.name))
                }
            }
        });
        names.into_iter().find(|name| {
            !self.claims.get(&(namespace.clone(), name.clone())).is_some_and(claims::is_bound)
        })
    }

    fn address(&mut self, pod: &Key) -> IpAddr {
        let number = u32::try_from(self.addresses.len()).unwrap_or(u32::MAX);
        let Some(pod) = self.pods.get(pod) else { return super::unreachable_address(number) };
        let uid = pod.uid().unwrap_or_default();
        *self.addresses.entry(uid).or_insert_with(|| (self.options.pod_address)(pod, number))
    }

    fn owns(&self, node: &str) -> bool {
        self.nodes.get(&(String::new(), node.to_owned())).is_some()
    }

    fn cares_for(&self, volume: &PersistentVolume) -> bool {
        let claim = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        let namespace = claim.and_then(|claim| claim.namespace.as_ref());
        self.options.namespace.is_none() || namespace == self.options.namespace.as_ref()
    }
}

fn watch<K>(api: Api<K>, config: watcher::Config) -> Watch<K>
where
    K: Resource + Metadata + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    watcher(api, config).default_backoff().boxed()
}

fn note<K: ResourceExt>(tracked: &mut Tracked<K>, event: Result<Event<K>, watcher::Error>) {
    match event {
        Ok(event) => tracked.note(event),
        // The watch heals itself; while the API server is stopped that is as expected.
        Err(error) => warn!(%error, "the stand-in's watch broke"),
    }
}

fn report(outcome: anyhow::Result<()>) -> bool {
    if let Err(error) = &outcome {
        warn!(error = format!("{error:#}"), "the stand-in tries again");
    }
    outcome.is_ok()
}
