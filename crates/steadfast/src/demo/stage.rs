//! The embedded cluster of the demo: simulated API server and controllers, a node, the operator.
//!
//! Where PostgreSQL's programs are installed the node runs them for real; elsewhere the simulated
//! cluster's model answers, and the demo says so.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use localnode::{LocalNode, Programs};
use operators::database::DatabaseController;
use runner::clock::SystemClock;
use runner::external::dial::{Dialer, EndpointSlices};
use runner::random::SystemRandom;
use runner::{Config, Environment, Runner};
use sim::builtin::Switch;
use sim::clock::Clock;
use sim::server::Server;
use sim::world::World;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args::Demo;
use crate::{embedded, manifests};

/// The name that the demo's operator goes by in the API server's log.
const OPERATOR: &str = "system:serviceaccount:steadfast:steadfast";

/// Everything that the demo started.
pub struct Stage {
    /// A client with every right, for the person at the console.
    pub client: kube::Client,
    /// Where the kubeconfig lies.
    pub kubeconfig: PathBuf,
    folder: tempfile::TempDir,
    server: Server,
    node: Option<LocalNode>,
    real: Option<u32>,
    tasks: JoinSet<()>,
}

impl Stage {
    /// Starts it all.
    ///
    /// # Errors
    /// When a port cannot be bound, a file cannot be written, or the node cannot be started.
    pub async fn build(options: &Demo, stop: &CancellationToken) -> anyhow::Result<Self> {
        let world = World::with_clock(seed(), Clock::starting_at(Timestamp::now()));
        let mut tasks = JoinSet::new();
        for crd in manifests::crds()? {
            world
                .apply(&crd.to_string())
                .map_err(|refusal| anyhow::anyhow!("a definition was refused: {refusal:?}"))?;
        }
        let client = kube::Client::new(world.cluster.service(), "default");
        let programs = Programs::find();
        let real = if options.model { None } else { programs.postgres_for(None).map(|p| p.major) };
        if real.is_some() {
            // The simulated scheduler places pods and lets claims be bound; the only node is ours.
            world.model(|model| model.kubelet = Switch::External);
            world
                .delete("Node", "", "node-1")
                .map_err(|refusal| anyhow::anyhow!("the model's node stays: {refusal:?}"))?;
        }
        let driver = world.spawn();
        tasks.spawn(async move {
            // It ends with the runtime; a panic in it ends only the demo's cluster.
            let _ = driver.await;
        });
        let node = match real {
            Some(_) => Some(start_node(&world).await?),
            None => None,
        };
        let server = Server::start(&world.cluster).await.context("no port for the API server")?;
        let folder = tempfile::tempdir().context("no folder for the kubeconfig")?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, server.kubeconfig()).context("the kubeconfig")?;
        let runner = operator(&world, real.is_some(), options);
        tasks.spawn(runner.run(stop.clone()));
        Ok(Self { client, kubeconfig, folder, server, node, real, tasks })
    }

    /// Says what is real and what is not.
    pub fn introduce(&self) {
        println!("Embedded cluster on http://{}", self.server.address());
        match self.real {
            Some(major) => println!(
                "Pods are processes of this machine: a real PostgreSQL {major} (the programs that \
                 are installed here, whatever version an image names)."
            ),
            None => println!(
                "PostgreSQL's server programs are not used here: a MODEL of PostgreSQL answers, \
                 not the real one."
            ),
        }
        println!();
    }

    /// Takes everything down: operator, pods, files.
    pub async fn strike(mut self) {
        if let Some(node) = self.node.take() {
            node.stop().await;
        }
        self.tasks.shutdown().await;
        if let Err(error) = self.folder.close() {
            tracing::warn!(%error, "the kubeconfig's folder could not be removed");
        }
    }
}

async fn start_node(world: &World) -> anyhow::Result<LocalNode> {
    let client = kube::Client::new(world.cluster.client("system:node:local").service(), "default");
    let options = localnode::Options { schedule: false, ..localnode::Options::default() };
    LocalNode::start(client, options)
        .await
        .context("the node for real pods cannot be started (try --model)")
}

fn operator(world: &World, real: bool, options: &Demo) -> Runner {
    let client = kube::Client::new(world.cluster.client(OPERATOR).service(), "default");
    let environment = if real {
        let dialer: Arc<dyn Dialer> = Arc::new(EndpointSlices::new(client.clone()));
        let random = Arc::new(SystemRandom);
        Environment { client, clock: Arc::new(SystemClock), random, dialer }
    } else {
        embedded::environment(world, client, Arc::new(SystemRandom))
    };
    let config = Config { settings: options.decisions.settings(), ..Config::default() };
    Runner::new(environment, config).with::<DatabaseController>()
}

/// Two demos differ in uids, as two clusters do.
fn seed() -> u64 {
    Timestamp::now().as_microsecond().unsigned_abs()
}
