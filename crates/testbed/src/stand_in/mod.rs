//! A stand-in for what a cluster needs beyond its control plane: the scheduler, the kubelet, the storage
//! provisioner. **It goes when the real node comes**: a test that can use a real node should.
//!
//! It runs no program. It writes what those parts would write, with the outcome that a test asks for: pods
//! become ready, or fail to pull, crash, stay unscheduled. Known differences from the real thing:
//! no affinity, spread, resources or taints in scheduling (node selectors and the pinning of DaemonSet pods
//! are followed); no probes, hooks, logs or exec; all containers of a pod share one fate; a pod that is
//! deleted ends at once, whatever its grace period; only storage classes that bind at once.

mod claims;
mod node;
mod outcome;
mod place;
mod pods;
mod script;
mod status;
mod tracked;
mod worker;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio::task::JoinHandle;

pub use outcome::Outcome;
use script::Script;

/// Name of the node that is always there.
pub const NODE: &str = "stand-in";
/// Name of the default storage class.
pub const STORAGE_CLASS: &str = "stand-in";
/// Provisioner whose claims are bound; name it in storage classes of your own.
pub const PROVISIONER: &str = "steadfast.dev/stand-in";

/// Chooses a pod's address; the number counts pods from zero.
pub type PodAddress = Arc<dyn Fn(&Pod, u32) -> IpAddr + Send + Sync>;

/// Settings of a stand-in.
#[derive(Clone)]
pub struct StandInOptions {
    /// Only pods and claims of this namespace are cared for; `None` means all. Tests that share a control
    /// plane must each name their own.
    pub namespace: Option<String>,
    /// Addresses of pods.
    pub pod_address: PodAddress,
}

impl StandInOptions {
    /// For one namespace, with addresses that EndpointSlices accept and nobody answers on.
    pub fn in_namespace(namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::default() }
    }
}

impl Default for StandInOptions {
    fn default() -> Self {
        Self { namespace: None, pod_address: Arc::new(|_, number| unreachable_address(number)) }
    }
}

/// Addresses 10.244.0.1 and up.
pub fn unreachable_address(number: u32) -> IpAddr {
    address_in(Ipv4Addr::new(10, 244, 0, 1), number)
}

/// Addresses 127.1.0.1 and up, on which a test can really listen. The API server refuses loopback addresses
/// in EndpointSlices, so Services stay without endpoints.
pub fn loopback_address(number: u32) -> IpAddr {
    address_in(Ipv4Addr::new(127, 1, 0, 1), number)
}

/// Stays within the 65 534 addresses after `first`, and starts again after them.
fn address_in(first: Ipv4Addr, number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() + number % 65_534))
}

/// The stand-in at work. It stops when dropped; what it wrote stays.
pub struct PodStandIn {
    client: Client,
    script: Arc<Script>,
    worker: JoinHandle<()>,
}

impl PodStandIn {
    /// Creates the node and the default storage class if they are missing, and begins to work.
    ///
    /// # Errors
    /// The API server refuses one of the two.
    pub async fn start(client: Client, options: StandInOptions) -> Result<Self> {
        node::create(&client, NODE, &BTreeMap::new()).await?;
        claims::create_storage_class(&client).await?;
        let script = Arc::new(Script::default());
        let worker = worker::Worker::new(client.clone(), options, Arc::clone(&script));
        Ok(Self { client, script, worker: tokio::spawn(worker.run()) })
    }

    /// What becomes of one pod from now on, also of a later one with that name.
    pub fn set_outcome(&self, namespace: &str, pod: &str, outcome: Outcome) {
        self.script
            .change(|plot| plot.outcomes.insert((namespace.to_owned(), pod.to_owned()), outcome));
    }

    /// Forgets what [`Self::set_outcome`] said of the pod.
    pub fn clear_outcome(&self, namespace: &str, pod: &str) {
        self.script.change(|plot| plot.outcomes.remove(&(namespace.to_owned(), pod.to_owned())));
    }

    /// Decides about every pod that [`Self::set_outcome`] does not name, by its image for example. `None`
    /// means the usual: ready, or completed if the pod is not meant to run for ever.
    pub fn set_rule(&self, rule: impl Fn(&Pod) -> Option<Outcome> + Send + Sync + 'static) {
        self.script.change(|plot| plot.rule = Some(Arc::new(rule)));
    }

    /// Whether a deleted pod goes (the usual) or stays terminating, as on a node that does not answer.
    pub fn hold_termination(&self, namespace: &str, pod: &str, hold: bool) {
        let key = (namespace.to_owned(), pod.to_owned());
        self.script
            .change(|plot| if hold { plot.held.insert(key) } else { plot.held.remove(&key) });
    }

    /// Whether claims are bound and grown (the usual) or left pending, as without a provisioner.
    pub fn hold_claims(&self, hold: bool) {
        self.script.change(|plot| plot.claims_held = hold);
    }

    /// Adds a node with these labels. DaemonSets of the whole cluster see it.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn add_node(&self, name: &str, labels: &BTreeMap<String, String>) -> Result<()> {
        node::create(&self.client, name, labels).await
    }

    /// Sets a node's `Ready` condition to true, or to unknown as when its kubelet stops reporting.
    ///
    /// # Errors
    /// The API server refuses it, or there is no such node.
    pub async fn set_node_ready(&self, name: &str, ready: bool) -> Result<()> {
        node::report(&self.client, name, ready).await
    }
}

impl Drop for PodStandIn {
    fn drop(&mut self) {
        self.worker.abort();
    }
}
