//! Watches the cluster and gives each pod of this node its worker. Decides nothing about a pod itself.

use crate::context::Context;
use crate::scheduler::Seen;
use crate::sources::References;
use crate::volume::claims::VolumeKey;
use crate::worker::{Wanted, Worker};
use futures::stream::{self, BoxStream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

/// What the watches bring.
enum Change {
    Pod(Box<Event<Pod>>),
    ConfigMap(String, String),
    Secret(String, String),
    ClaimGone(VolumeKey),
    VolumeGone(VolumeKey),
    Nothing,
}

/// A worker's task and the lines to it.
struct Post {
    namespace: String,
    name: String,
    references: References,
    wanted: watch::Sender<Wanted>,
    sources_changed: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for Post {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watches until the order to stop comes, then lets every worker stop its containers.
pub(crate) struct Watching {
    context: Arc<Context>,
    namespaces: Option<BTreeSet<String>>,
    scheduler: Option<mpsc::Sender<Seen>>,
    posts: BTreeMap<String, Post>,
    listed: BTreeSet<String>,
    retired: Vec<Post>,
    next_number: u32,
}

impl Watching {
    /// Ready to watch; `scheduler` hears of every pod if there is one.
    pub(crate) fn new(
        context: Arc<Context>,
        namespaces: Option<BTreeSet<String>>,
        scheduler: Option<mpsc::Sender<Seen>>,
    ) -> Self {
        Self {
            context,
            namespaces,
            scheduler,
            posts: BTreeMap::new(),
            listed: BTreeSet::new(),
            retired: Vec::new(),
            next_number: 0,
        }
    }

    /// Watches until `stop` is notified.
    pub(crate) async fn run(mut self, stop: Arc<Notify>) {
        let mut changes = self.changes();
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(change) => self.take(change).await,
                    None => break,
                },
                () = stop.notified() => break,
            }
        }
        drop(changes);
        let posts: Vec<Post> = std::mem::take(&mut self.posts)
            .into_values()
            .chain(std::mem::take(&mut self.retired))
            .collect();
        for post in &posts {
            post.wanted.send_replace(Wanted::NodeStops);
        }
        for mut post in posts {
            // Its panic, if there was one, has been printed; the pod is over either way.
            let _ = (&mut post.task).await;
        }
    }

    fn changes(&self) -> BoxStream<'static, Change> {
        let client = || self.context.client.clone();
        stream::select_all([
            changes_of::<Pod>(Api::all(client()), |event| Change::Pod(Box::new(event))),
            changes_of::<ConfigMap>(Api::all(client()), |event| {
                of_source(event, Change::ConfigMap)
            }),
            changes_of::<Secret>(Api::all(client()), |event| of_source(event, Change::Secret)),
            changes_of::<PersistentVolumeClaim>(Api::all(client()), |event| match event {
                Event::Delete(claim) => Change::ClaimGone(VolumeKey::of_claim(&claim)),
                _ => Change::Nothing,
            }),
            changes_of::<PersistentVolume>(Api::all(client()), |event| match event {
                Event::Delete(volume) => Change::VolumeGone(VolumeKey::of_volume(&volume)),
                _ => Change::Nothing,
            }),
        ])
        .boxed()
    }

    async fn take(&mut self, change: Change) {
        match change {
            Change::Pod(event) => self.take_pod(*event).await,
            Change::ConfigMap(namespace, name) => {
                self.wake(&namespace, |references| references.config_maps.contains(&name));
            }
            Change::Secret(namespace, name) => {
                self.wake(&namespace, |references| references.secrets.contains(&name));
            }
            Change::ClaimGone(key) | Change::VolumeGone(key) => self.remove_volume(&key),
            Change::Nothing => {}
        }
    }

    async fn take_pod(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.extend(pod.metadata.uid.clone());
                self.pod_seen(pod).await;
            }
            Event::InitDone => {
                let missing: Vec<String> =
                    self.posts.keys().filter(|uid| !self.listed.contains(*uid)).cloned().collect();
                for uid in missing {
                    self.pod_gone(uid).await;
                }
            }
            Event::Apply(pod) => self.pod_seen(pod).await,
            Event::Delete(pod) => self.pod_gone(pod.metadata.uid.unwrap_or_default()).await,
        }
    }

    async fn pod_seen(&mut self, pod: Pod) {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        if self.namespaces.as_ref().is_some_and(|wanted| !wanted.contains(&namespace)) {
            return;
        }
        let pod = Arc::new(pod);
        if let Some(scheduler) = &self.scheduler {
            // A scheduler that is gone ends with the node.
            let _ = scheduler.send(Seen::Pod(Arc::clone(&pod))).await;
        }
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        if node != Some(self.context.node_name.as_str()) {
            return;
        }
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        match self.posts.get(&uid) {
            Some(post) => drop(post.wanted.send_replace(Wanted::Pod(pod))),
            None => self.employ(uid, namespace, pod),
        }
    }

    /// Starts a worker. It waits for the worker of an earlier pod of the same name, which may still be
    /// stopping the server that owns the same data.
    fn employ(&mut self, uid: String, namespace: String, pod: Arc<Pod>) {
        self.retired.retain(|post| !post.task.is_finished());
        let name = pod.metadata.name.clone().unwrap_or_default();
        let is_same = |post: &Post| post.namespace == namespace && post.name == name;
        let mut earlier: Vec<Post> = self.retired.extract_if(.., |post| is_same(post)).collect();
        let superseded: Vec<String> = self
            .posts
            .iter()
            .filter(|(_, post)| is_same(post))
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in superseded {
            if let Some(post) = self.posts.remove(&uid) {
                post.wanted.send_replace(Wanted::Gone);
                earlier.push(post);
            }
        }
        self.next_number += 1;
        let (wanted, receiver) = watch::channel(Wanted::Pod(Arc::clone(&pod)));
        let sources_changed = Arc::new(Notify::new());
        let references = References::of(&pod);
        let worker = Worker::new(
            Arc::clone(&self.context),
            pod,
            receiver,
            Arc::clone(&sources_changed),
            self.next_number,
        );
        let task = tokio::spawn(async move {
            for mut post in earlier {
                // Its panic, if there was one, has been printed; the pod is over either way.
                let _ = (&mut post.task).await;
            }
            worker.run().await;
        });
        self.posts.insert(uid, Post { namespace, name, references, wanted, sources_changed, task });
    }

    async fn pod_gone(&mut self, uid: String) {
        if let Some(post) = self.posts.remove(&uid) {
            post.wanted.send_replace(Wanted::Gone);
            self.retired.push(post);
        }
        if let Some(scheduler) = &self.scheduler {
            // A scheduler that is gone ends with the node.
            let _ = scheduler.send(Seen::Gone(uid)).await;
        }
    }

    fn wake(&self, namespace: &str, reads: impl Fn(&References) -> bool) {
        for post in self
            .posts
            .values()
            .filter(|post| post.namespace == namespace && reads(&post.references))
        {
            post.sources_changed.notify_one();
        }
    }

    fn remove_volume(&self, key: &VolumeKey) {
        let Some(folder) = self.context.claims().forget(key) else { return };
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%error, folder = %folder.display(), "a volume's folder could not be removed");
            }
            _ => {}
        }
    }
}

fn changes_of<K>(
    api: Api<K>,
    change: impl Fn(Event<K>) -> Change + Send + 'static,
) -> BoxStream<'static, Change>
where
    K: Resource<DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + Send
        + 'static,
{
    watcher(api, watcher::Config::default())
        .default_backoff()
        .map(move |outcome| match outcome {
            Ok(event) => change(event),
            Err(error) => {
                tracing::debug!(%error, kind = %K::kind(&()), "a watch was interrupted");
                Change::Nothing
            }
        })
        .boxed()
}

fn of_source<K: Resource>(event: Event<K>, change: impl Fn(String, String) -> Change) -> Change {
    match event {
        Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => {
            let metadata = object.meta();
            change(
                metadata.namespace.clone().unwrap_or_default(),
                metadata.name.clone().unwrap_or_default(),
            )
        }
        Event::Init | Event::InitDone => Change::Nothing,
    }
}
