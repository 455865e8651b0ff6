//! A control plane with nodes that lives as long as its value.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use super::dns;
use super::holder::CLEAN;
use super::launch::{FIRST, Node, Site};
use super::network::Network;
use super::room::Place;
use super::settings::{REGISTRIES, plain_registry};
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
    nodes: Nodes,
    _scheduler: Program,
    group: Group,
    plane: ControlPlane,
    loaded: Mutex<BTreeSet<PathBuf>>,
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
        for (index, node) in (FIRST..).zip(&nodes) {
            connect(node, index, options.nodes, &network)?;
        }
        for node in &mut nodes {
            node.wait_until_ready(&client, deadline).await?;
        }
        let config = plane.config_for(&Identity::Admin).await?;
        let volumes = Background::start(config, network.volumes())?;
        Ok(Self {
            _volumes: volumes,
            nodes: Nodes::new(nodes),
            _scheduler: scheduler,
            group,
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
        if super::is_lent(recipe) {
            return Ok(());
        }
        self.import(&recipe.find()?).await
    }

    /// Makes sure that every node has the image of a folder, as [`Recipe::with_program`] makes it.
    ///
    /// # Errors
    /// It cannot be imported.
    pub async fn import(&self, image: &Path) -> Result<()> {
        let mut loaded = self.loaded.lock().await;
        if !loaded.contains(image) {
            self.nodes.lock().iter().flatten().try_for_each(|node| node.import(image))?;
            loaded.insert(image.to_owned());
        }
        Ok(())
    }

    /// Names of the nodes, of lost ones too.
    pub fn nodes(&self) -> Vec<String> {
        (FIRST..).zip(self.nodes.lock().iter()).map(|(index, _)| self.place(index).name()).collect()
    }

    /// Name and process number of each program on the nodes; `node` is the first process of a node, which all
    /// others end with.
    pub fn processes(&self) -> Vec<(&'static str, u32)> {
        self.nodes.lock().iter().flatten().flat_map(Node::numbers).collect()
    }

    /// Ends all that runs on a node at once, as a cut of its power would. Its files stay.
    ///
    /// # Errors
    /// There is no such node, or it is lost already.
    pub fn lose_node(&self, name: &str) -> Result<()> {
        let index = self.index(name)?;
        let lost = self.nodes.take(index);
        lost.with_context(|| format!("{name} is lost already")).map(drop)
    }

    /// Starts a lost node again, and waits until it is ready.
    ///
    /// # Errors
    /// There is no such node, or it does not start.
    pub async fn return_node(&self, name: &str) -> Result<()> {
        let index = self.index(name)?;
        let (programs, store) = (programs::find()?, store::find()?);
        let site = Site { plant: &self.plane.plant, programs: &programs, group: &self.group };
        let deadline = Instant::now() + ClusterOptions::default().start_timeout;
        let mut node = site.start_node(self.place(index), &store, deadline).await?;
        let count = u8::try_from(self.nodes.lock().len())?;
        connect(&node, index, count, &self.network)?;
        node.wait_until_ready(&self.plane.client().await?, deadline).await?;
        self.nodes.put(index, node);
        Ok(())
    }

    /// Lets the nodes pull from a registry at `host:port` without TLS, as they do from one on their own machine.
    ///
    /// # Errors
    /// The setting cannot be written.
    pub fn trust_plain_registry(&self, host: &str) -> Result<()> {
        for node in self.nodes() {
            let folder = self.folder().join(node).join(REGISTRIES).join(host);
            fs::create_dir_all(&folder).context("make a folder for a registry's settings")?;
            fs::write(folder.join("hosts.toml"), plain_registry(host))
                .context("write a registry's settings")?;
        }
        Ok(())
    }

    /// This machine's address in the nodes' network: what listens there can be reached from nodes and pods.
    pub fn machine(&self) -> Ipv4Addr {
        self.network.machine()
    }

    fn place(&self, index: u8) -> Place<'_> {
        Place { network: &self.network, index }
    }

    fn index(&self, name: &str) -> Result<u8> {
        let found = (FIRST..).zip(self.nodes()).find(|(_, node)| node == name);
        found.map(|(index, _)| index).with_context(|| format!("no node is called {name}"))
    }

    /// Name of the bridge, the control groups, and the start of the cables' names on this machine.
    pub fn mark(&self) -> String {
        self.network.name()
    }

    /// Folder of the nodes' files, their logs among them.
    pub fn folder(&self) -> &Path {
        self.network.folder()
    }
}

/// Tells a node the way to the pods of the others.
fn connect(node: &Node, own: u8, count: u8, network: &Network) -> Result<()> {
    for other in (FIRST..FIRST + count).filter(|other| *other != own) {
        node.room()
            .add_route(&network.pods(other), network.node(other))
            .context("connect two nodes")?;
    }
    Ok(())
}

/// The nodes by their index; a lost one leaves its place empty.
#[derive(Debug)]
struct Nodes(std::sync::Mutex<Vec<Option<Node>>>);

impl Nodes {
    fn new(nodes: Vec<Node>) -> Self {
        Self(std::sync::Mutex::new(nodes.into_iter().map(Some).collect()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Node>>> {
        // Whoever panicked with the lock left the list whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, index: u8) -> Option<Node> {
        self.lock().get_mut(usize::from(index - FIRST))?.take()
    }

    fn put(&self, index: u8, node: Node) {
        if let Some(place) = self.lock().get_mut(usize::from(index - FIRST)) {
            *place = Some(node);
        }
    }
}
