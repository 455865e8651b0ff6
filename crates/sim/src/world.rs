//! The whole simulated world: API, built-in controllers, models, and the task that drives them.
//!
//! Time is tokio's, so a paused runtime makes it virtual. Must not know any operator.

mod dial;
mod script;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::builtin::{Builtin, Model, admission};
use crate::checker::{Checker, Violation};
use crate::clock::Clock;
use crate::external::postgres::{Conditions, Server};
use crate::external::zookeeper;
use crate::{Actor, Cluster, Core, Options};

/// A cluster with everything in it. Clones share one world.
#[derive(Clone)]
pub struct World {
    /// The API.
    pub cluster: Cluster,
    builtin: Arc<Mutex<Builtin>>,
    checker: Arc<Mutex<Checker>>,
    nudged: Arc<Notify>,
}

impl World {
    /// A fresh world: system namespaces, one node, the default StorageClass `standard`.
    pub fn new(seed: u64) -> World {
        World::with_clock(seed, Clock::default())
    }

    /// The same, showing another time.
    pub fn with_clock(seed: u64, clock: Clock) -> World {
        let cluster = Cluster::with_clock(seed, clock);
        cluster.with(|core| {
            core.admission.extend(admission::hooks());
            furnish(core);
        });
        let mut builtin = Builtin::new(seed);
        crate::external::install(&mut builtin.model);
        let world = World {
            cluster,
            builtin: Arc::new(Mutex::new(builtin)),
            checker: Arc::new(Mutex::new(Checker::default())),
            nudged: Arc::new(Notify::new()),
        };
        world.join();
        world
    }

    /// Starts the task that runs the built-in controllers; it ends when it is aborted.
    pub fn spawn(&self) -> JoinHandle<()> {
        let world = self.clone();
        tokio::spawn(async move { world.drive().await })
    }

    /// Changes settings, faults or contents of the models; the controllers look again afterwards.
    pub fn model<R>(&self, change: impl FnOnce(&mut Model) -> R) -> R {
        let mut builtin = self.builtin();
        let answer = change(&mut builtin.model);
        self.cluster.with(|core| builtin.nudge(core));
        drop(builtin);
        self.nudged.notify_one();
        answer
    }

    /// The PostgreSQL server that runs in a pod.
    pub fn postgres(&self, namespace: &str, pod: &str) -> Option<Arc<Server>> {
        let pod = self.get("Pod", namespace, pod)?;
        let address = crate::builtin::field::text(&pod, "/status/podIP").to_owned();
        self.builtin().model.network.attached(&address)
    }

    /// The ZooKeeper server that runs in a pod.
    pub fn zookeeper(&self, namespace: &str, pod: &str) -> Option<Arc<zookeeper::Server>> {
        let pod = self.get("Pod", namespace, pod)?;
        let address = crate::builtin::field::text(&pod, "/status/podIP").to_owned();
        self.builtin().model.network.attached(&address)
    }

    /// Does something to the PostgreSQL server of a pod; the kubelet looks again afterwards.
    /// Answers none when no server runs there.
    pub fn disturb<R>(
        &self,
        namespace: &str,
        pod: &str,
        change: impl FnOnce(&mut Conditions) -> R,
    ) -> Option<R> {
        let answer = self.postgres(namespace, pod)?.conditions(change);
        self.model(|_| ());
        Some(answer)
    }

    /// Takes a node away with its network: its kubelet is silent, and nothing reaches its pods, whose
    /// programs go on.
    pub fn lose_node(&self, node: &str) {
        let addresses = self.addresses_on(node);
        self.model(|model| {
            model.down.insert(node.to_owned());
            addresses.iter().for_each(|address| model.network.isolate(address));
        });
    }

    /// Brings a node back.
    pub fn regain_node(&self, node: &str) {
        let addresses = self.addresses_on(node);
        self.model(|model| {
            model.down.remove(node);
            addresses.iter().for_each(|address| model.network.rejoin(address));
        });
    }

    fn addresses_on(&self, node: &str) -> Vec<String> {
        let text = crate::builtin::field::text;
        let pods = self.list("pods", "").into_iter();
        let here = pods.filter(|pod| text(pod, "/spec/nodeName") == node);
        here.map(|pod| text(&pod, "/status/podIP").to_owned()).filter(|ip| !ip.is_empty()).collect()
    }

    /// Adds a rule that must hold after every change of the store.
    pub fn check(
        &self,
        name: &str,
        rule: impl Fn(&crate::checker::Moment) -> Result<(), String> + Send + 'static,
    ) {
        self.checker().add(name, Box::new(rule));
    }

    /// Every violation of a rule so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.cluster.with(|core| self.checker().look(core));
        self.checker().violations().to_vec()
    }

    /// A number over everything stored: equal digests mean equal stores.
    pub fn digest(&self) -> u64 {
        self.cluster.with(|core| {
            core.store.all().fold(0xcbf2_9ce4_8422_2325, |hash, (key, object)| {
                let text = format!("{key:?}{object}");
                text.bytes().fold(hash, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
                })
            })
        })
    }

    /// A service for a `kube::Client` of a user: with port-forward into the models.
    pub fn service(&self) -> crate::service::ApiService {
        self.cluster.service().dialing(Arc::new(self.clone()))
    }

    /// One step of the built-in controllers, without the driver; answers when the next is due.
    pub fn step(&self) -> Option<jiff::Timestamp> {
        let mut builtin = self.builtin();
        self.cluster.with(|core| {
            let next = builtin.step(core);
            self.checker().look(core);
            next
        })
    }

    /// Lets virtual time pass.
    pub async fn run_for(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Waits until `holds`, looking after every change; false when `longest` has passed first.
    pub async fn wait_until(
        &self,
        longest: Duration,
        holds: impl Fn(&crate::Store) -> bool,
    ) -> bool {
        let changed = self.cluster.changed();
        let wait = async {
            loop {
                let next = changed.notified();
                tokio::pin!(next);
                next.as_mut().enable();
                if self.cluster.with(|core| holds(&core.store)) {
                    return;
                }
                next.await;
            }
        };
        tokio::time::timeout(longest, wait).await.is_ok()
    }

    async fn drive(&self) {
        let changed = self.cluster.changed();
        loop {
            let next = changed.notified();
            tokio::pin!(next);
            next.as_mut().enable();
            let due = self.step();
            let alarm = due.map(|at| self.cluster.with(|core| core.clock.instant(at)));
            let sleep = async {
                match alarm {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = next => {}
                () = self.nudged.notified() => {}
                () = sleep => {}
            }
        }
    }

    fn builtin(&self) -> MutexGuard<'_, Builtin> {
        // Whoever panicked while holding it has failed already.
        self.builtin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn checker(&self) -> MutexGuard<'_, Checker> {
        self.checker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a new cluster has.
fn furnish(core: &mut Core) {
    let mut objects = Vec::new();
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        objects.push(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name },
        }));
    }
    objects.push(node("node-1", "172.18.0.2"));
    objects.push(json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "standard",
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": "volumes.sim.steadfast.dev",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    }));
    objects.push(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "clusterIP": "10.96.0.1",
            "ports": [{ "name": "https", "port": 443, "targetPort": 6443 }],
        },
    }));
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "name": "default", "namespace": name },
        }));
    }
    for object in objects {
        install(core, object);
    }
}

/// A node as the model kubelet registers it.
pub fn node(name: &str, address: &str) -> Value {
    let room = json!({ "cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi" });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "status": {
            "addresses": [
                { "type": "InternalIP", "address": address },
                { "type": "Hostname", "address": name },
            ],
            "allocatable": room,
            "capacity": room,
            "conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
                "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "containerd://2.1.0",
                "kernelVersion": "6.1",
                "kubeProxyVersion": "v1.36.3",
                "kubeletVersion": "v1.36.3",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "model",
                "systemUUID": "",
            },
        },
    })
}

/// Creates an object of the cluster's own; one that is there already stays as it is.
fn install(core: &mut Core, object: Value) {
    let api_version = crate::builtin::field::text(&object, "/apiVersion").to_owned();
    let kind = crate::builtin::field::text(&object, "/kind").to_owned();
    let Some(kind) = core.kinds.by_kind(&api_version, &kind) else { return };
    let namespace = crate::builtin::field::namespace(&object).to_owned();
    let actor = Actor::new("system:apiserver", "kube-apiserver");
    let _ = core.create(&actor, &kind, &namespace, object, &Options::default());
}
