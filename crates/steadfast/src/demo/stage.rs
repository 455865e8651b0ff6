//! The embedded cluster of the demo: simulated API server and controllers, a node, the operator.
//!
//! Where PostgreSQL's programs are installed the node runs them for real; elsewhere, and where a kind
//! is asked for whose programs the node does not run, the simulated cluster's models answer, and the
//! demo says so.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use localnode::{LocalNode, Programs};
use runner::clock::SystemClock;
use runner::external::dial::{Dialer, EndpointSlices};
use runner::random::SystemRandom;
use runner::{Config, Environment, Runner};
use sim::builtin::Switch;
use sim::clock::Clock;
use sim::server::Server;
use sim::stream::TcpDial;
use sim::world::World;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::folder::Folder;
use crate::args::{Decisions, Demo};
use crate::{controllers, embedded, manifests};

/// The name that the demo's operator goes by in the API server's log.
const OPERATOR: &str = "system:serviceaccount:steadfast:steadfast";

/// How long pods may take to end by themselves; then their processes are killed, so that a person who
/// pressed Ctrl-C waits some seconds at most.
const GRACE: Duration = Duration::from_millis(1500);

/// Everything that the demo started.
pub struct Stage {
    /// A client with every right, for the person at the console.
    pub client: kube::Client,
    /// Where the kubeconfig lies.
    pub kubeconfig: PathBuf,
    world: World,
    // Before the folder: the node's end is the longer one, and may need the server.
    node: Option<LocalNode>,
    server: Server,
    folder: Folder,
    real: Option<u32>,
    tasks: JoinSet<()>,
}

impl Stage {
    /// Starts it all, the operator included; pods are models where that is asked for.
    ///
    /// # Errors
    /// When a port cannot be bound, a file cannot be written, or the node cannot be started.
    pub async fn build(
        options: &Demo,
        model: bool,
        stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let mut stage = Self::raise(model).await?;
        stage.operate(&options.decisions, stop);
        Ok(stage)
    }

    /// Starts the cluster with the definitions in it, and no operator.
    ///
    /// # Errors
    /// When a port cannot be bound, a file cannot be written, or the node cannot be started.
    pub async fn raise(model: bool) -> anyhow::Result<Self> {
        let world = World::with_clock(seed(), Clock::starting_at(Timestamp::now()));
        for crd in manifests::crds()? {
            world
                .apply(&crd.to_string())
                .map_err(|refusal| anyhow::anyhow!("a definition was refused: {refusal:?}"))?;
        }
        let programs = Programs::find();
        let real = if model { None } else { programs.postgres_for(None).map(|p| p.major) };
        if real.is_some() {
            // The simulated scheduler places pods and lets claims be bound; the only node is ours.
            world.model(|model| model.kubelet = Switch::External);
            // Commands run in the models' containers, of which there are none then.
            world.cluster.with(|core| core.exec = None);
            world
                .delete("Node", "", "node-1")
                .map_err(|refusal| anyhow::anyhow!("the model's node stays: {refusal:?}"))?;
        }
        let mut tasks = JoinSet::new();
        let driver = world.spawn();
        tasks.spawn(async move {
            // It ends with the runtime; a panic in it ends only the demo's cluster.
            let _ = driver.await;
        });
        let node = match real {
            Some(_) => Some(start_node(&world).await?),
            None => None,
        };
        let server = serve(&world, real.is_some()).await?;
        let folder = Folder::make().context("no folder for the kubeconfig")?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, server.kubeconfig()).context("the kubeconfig")?;
        let client = kube::Client::new(world.service(), "default");
        Ok(Self { client, kubeconfig, world, node, server, folder, real, tasks })
    }

    /// Starts the operator, until it is told to stop.
    pub fn operate(&mut self, decisions: &Decisions, stop: &CancellationToken) {
        let runner = operator(&self.world, self.real.is_some(), decisions);
        self.tasks.spawn(runner.run(stop.clone()));
    }

    /// Says what is real and what is not, and how to look at it while it comes up.
    pub fn introduce(&self, with_kubeconfig: bool) {
        println!("Embedded cluster on http://{}", self.server.address());
        match self.real {
            Some(major) => println!(
                "Pods are processes of this machine: a real PostgreSQL {major} answers, since its \
                 programs are\ninstalled here, whatever version an image names."
            ),
            None => println!(
                "A MODEL of PostgreSQL answers, and of ZooKeeper, not the real ones: the server \
                 programs are not\ninstalled here, other kinds than Database are asked for, or --model \
                 was given. The phases are the\nsame; SQL is not."
            ),
        }
        if with_kubeconfig {
            println!("kubectl in another terminal works from now on, with this line:\n");
            println!("export KUBECONFIG={}", self.kubeconfig.display());
        }
        println!();
    }

    /// Takes everything down: operator, pods, files.
    pub async fn strike(mut self) {
        if let Some(node) = self.node.take() {
            node.stop_within(GRACE).await;
        }
        self.tasks.shutdown().await;
        drop(self.server);
        drop(self.folder);
    }
}

/// The API server for kubectl. Port-forwards end where the pods are: at addresses of this machine, or
/// in the models.
async fn serve(world: &World, real: bool) -> anyhow::Result<Server> {
    let service =
        if real { world.cluster.service().dialing(Arc::new(TcpDial)) } else { world.service() };
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    Server::serve(service, anywhere).await.context("no port for the API server")
}

async fn start_node(world: &World) -> anyhow::Result<LocalNode> {
    let client = kube::Client::new(world.cluster.client("system:node:local").service(), "default");
    let options = localnode::Options { schedule: false, ..localnode::Options::default() };
    LocalNode::start(client, options)
        .await
        .context("the node for real pods cannot be started (try --model)")
}

fn operator(world: &World, real: bool, decisions: &Decisions) -> Runner {
    let client = kube::Client::new(world.cluster.client(OPERATOR).service(), "default");
    let environment = if real {
        let dialer: Arc<dyn Dialer> = Arc::new(EndpointSlices::new(client.clone()));
        let random = Arc::new(SystemRandom);
        Environment { client, clock: Arc::new(SystemClock), random, dialer }
    } else {
        embedded::environment(world, client, Arc::new(SystemRandom))
    };
    let config = Config { settings: decisions.settings(), ..Config::default() };
    controllers::all(Runner::new(environment, config))
}

/// Two demos differ in uids, as two clusters do.
fn seed() -> u64 {
    Timestamp::now().as_microsecond().unsigned_abs()
}
