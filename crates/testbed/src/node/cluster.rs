//! A control plane with nodes that lives as long as its value.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use super::dns;
use super::holder::CLEAN;
use super::launch::{FIRST, Node, Site};
use super::network::Network;
use super::room::Place;
use super::volumes::Background;
use super::{programs, store};
use crate::access::Identity;
use crate::control_plane::ControlPlane;
use crate::images::Recipe;
use crate::options::Options;
use crate::programs::{Group, Program};

/// Settings of a cluster. The default is one node.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// How many nodes.
    pub nodes: u8,
    /// The control plane's settings. Its address is chosen by the cluster.
    pub plane: Options,
    /// How long the nodes may take to become ready.
    pub start_timeout: Duration,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            nodes: 1,
            plane: Options { node_lifecycle: true, ..Options::default() },
            // A few seconds are usual; a machine shared by many builds can take ten times that.
            start_timeout: Duration::from_secs(120),
        }
    }
}

/// A running control plane with nodes. Dropping it ends all programs and containers and removes what they left;
/// so does the end of this process, even a violent one.
#[derive(Debug)]
pub struct Cluster {
    // Dropped in this order: what runs on the nodes, the nodes, what they talk to, the ground they stand on.
    _volumes: Background,
    nodes: Vec<Node>,
    _scheduler: Program,
    _group: Group,
    plane: ControlPlane,
    loaded: Mutex<BTreeSet<&'static str>>,
    network: Network,
}

impl Cluster {
    /// Starts a cluster and waits until its nodes are ready.
    ///
    /// # Errors
    /// A program or the pause image is missing (see [`super::require_or_skip`]), we lack rights, or a program
    /// ends or is not ready in time.
    pub async fn start(options: ClusterOptions) -> Result<Self> {
        let programs = programs::find()?;
        let store = store::find()?;
        let network = Network::claim()?;
        let address = network.machine();
        let plane = ControlPlane::start(Options { address, ..options.plane }).await?;
        let group = Group::guarding(network.number(), network.folder(), CLEAN, network.lock()?)?;
        let site = Site { plant: &plane.plant, programs: &programs, group: &group };
        let deadline = Instant::now() + options.start_timeout;
        let scheduler = site.start_scheduler()?;
        let client = plane.client().await?;
        dns::introduce(&client, network.node(FIRST)).await?;
        let mut nodes = Vec::new();
        for index in FIRST..FIRST + options.nodes {
            let place = Place { network: &network, index };
            nodes.push(site.start_node(place, &store, deadline).await?);
        }
        connect(&nodes, &network)?;
        for node in &mut nodes {
            node.wait_until_ready(&client, deadline).await?;
        }
        let config = plane.config_for(&Identity::Admin).await?;
        let volumes = Background::start(config, network.folder().join("volumes"))?;
        Ok(Self {
            _volumes: volumes,
            nodes,
            _scheduler: scheduler,
            _group: group,
            plane,
            loaded: Mutex::default(),
            network,
        })
    }

    /// The cluster that all tests of one program share: one node, started by the first who asks, ended with the
    /// process. Keep to a namespace of your own in it.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Cluster> = OnceCell::const_new();
        SHARED.get_or_try_init(|| Self::start(ClusterOptions::default())).await
    }

    /// The control plane: clients, namespaces, the audit log.
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// Makes sure that every node has an image. Those of [`crate::images::ALL`] are there from the start; one of a test's
    /// own is imported, once.
    ///
    /// # Errors
    /// It is not built, or cannot be imported.
    pub async fn load(&self, recipe: &Recipe) -> Result<()> {
        let mut loaded = self.loaded.lock().await;
        if super::is_lent(recipe) || loaded.contains(recipe.name()) {
            return Ok(());
        }
        let image = recipe.find()?;
        for node in &self.nodes {
            node.import(&image)?;
        }
        loaded.insert(recipe.name());
        Ok(())
    }

    /// Names of the nodes.
    pub fn nodes(&self) -> Vec<&str> {
        self.nodes.iter().map(Node::name).collect()
    }

    /// Name and process number of each program on the nodes; `node` is the first process of a node, which all
    /// others end with.
    pub fn processes(&self) -> Vec<(&'static str, u32)> {
        self.nodes.iter().flat_map(Node::numbers).collect()
    }

    /// Name of the bridge, the control groups, and the start of the cables' names on this machine.
    pub fn mark(&self) -> String {
        self.network.name()
    }

    /// Folder of the nodes' files, their logs among them.
    pub fn folder(&self) -> &std::path::Path {
        self.network.folder()
    }
}

/// Tells every node the way to the pods of the others.
fn connect(nodes: &[Node], network: &Network) -> Result<()> {
    for (own, node) in (FIRST..).zip(nodes) {
        for (other, _) in (FIRST..).zip(nodes).filter(|(other, _)| *other != own) {
            node.room()
                .add_route(&network.pods(other), network.node(other))
                .context("connect two nodes")?;
        }
    }
    Ok(())
}
