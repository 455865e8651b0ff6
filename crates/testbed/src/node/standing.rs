//! A node that stays when its starter ends, for `cargo xtask cluster up --node`.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::time::Instant;

use super::dns;
use super::holder::Holder;
use super::launch::{FIRST, Node, Site};
use super::network::Network;
use super::room::Place;
use super::{programs, store};
use crate::launch::Plant;
use crate::programs::{Group, Program};

/// What a detached cluster's node gets.
#[derive(Debug, Clone)]
pub struct NodeSetup {
    /// A program that calls [`super::serve_volumes`], and its first arguments; it is started with the path of
    /// the admin's kubeconfig and the volumes' folder behind them.
    pub volumes: (PathBuf, Vec<String>),
}

/// A running node with all that belongs to it. Dropping it ends it.
pub(crate) struct Standing {
    // Dropped in this order.
    volumes: Program,
    node: Node,
    scheduler: Program,
    network: Network,
}

impl fmt::Debug for Standing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Standing").field("network", &self.network).finish_non_exhaustive()
    }
}

impl Standing {
    /// Starts a node for a running control plane, which must listen at the network's address.
    pub(crate) async fn start(plant: &Plant, setup: &NodeSetup, network: Network) -> Result<Self> {
        let programs = programs::find()?;
        let site = Site { plant, programs: &programs, group: &Group::Detached };
        let deadline = Instant::now() + plant.options.start_timeout;
        let client = plant.client().await?;
        let scheduler = site.start_scheduler()?;
        dns::introduce(&client, network.node(FIRST)).await?;
        let place = Place { network: &network, index: FIRST };
        let mut node = site.start_node(place, &store::find()?, deadline).await?;
        node.wait_until_ready(&client, deadline).await?;
        let volumes = start_volumes(plant, setup, network.folder())?;
        Ok(Self { volumes, node, scheduler, network })
    }

    /// Name and process number of each program, in the order of their start.
    pub(crate) fn numbers(&self) -> Vec<(&'static str, u32)> {
        let mut numbers = vec![(self.scheduler.name(), self.scheduler.pid())];
        numbers.extend(self.node.numbers());
        numbers.push((self.volumes.name(), self.volumes.pid()));
        numbers
    }

    /// Who holds the network: what is to be cleaned up when all has been taken down.
    pub(crate) fn holder(&self) -> Holder {
        self.network.holder()
    }

    /// Lets it live on without us.
    pub(crate) fn release(self) {
        self.volumes.release();
        self.node.release();
        self.scheduler.release();
        self.network.release();
    }
}

fn start_volumes(plant: &Plant, setup: &NodeSetup, folder: &Path) -> Result<Program> {
    let (program, first) = &setup.volumes;
    let kubeconfig = plant.layout.admin_kubeconfig();
    let mut arguments = first.clone();
    arguments.extend([kubeconfig, folder.join("volumes")].map(|path| path.display().to_string()));
    let log = plant.layout.log("volumes");
    Program::start("volumes", program, &arguments, (&Group::Detached, log))
        .context("start the volume provisioner")
}
