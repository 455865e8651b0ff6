//! `cargo xtask cluster`: a real control plane to try things on, kept until it is taken down.
//!
//! Only talks: `testbed` does the work. Without `--node` pods stay Pending unless `stand-in` runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Subcommand;
use testbed::detached::{Cluster, Site};
use testbed::node::NodeSetup;
use testbed::stand_in::{PodStandIn, StandInOptions};
use testbed::{Options, binaries, images, node};

/// What to do with the cluster.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    /// Build the control plane's programs if they are missing (minutes); start nothing
    Build {
        /// Also the nodes' programs and the images
        #[arg(long)]
        node: bool,
    },
    /// Start a control plane that stays until `down`
    Up {
        /// Also a real node that runs pods; needs root
        #[arg(long)]
        node: bool,
    },
    /// End its processes and remove its contents
    Down,
    /// Say what runs, which version, on which ports
    Status,
    /// Print the path of the admin's kubeconfig
    Kubeconfig,
    /// Provide volumes; what `up --node` leaves running
    #[command(hide = true)]
    Volumes {
        /// The admin's kubeconfig
        kubeconfig: PathBuf,
        /// Where volumes lie
        folder: PathBuf,
    },
    /// Until Ctrl-C, report pods as running and bind volumes, as a node would; runs no container
    StandIn,
}

/// Arguments of `cargo xtask cluster`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Carries the command out and prints its result.
///
/// # Errors
/// The programs cannot be built, the cluster does not start, or there is none to speak of.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start a runtime")?;
    match arguments.command {
        Command::Build { node } => build(node),
        Command::Up { node } => runtime.block_on(up(node)),
        Command::Down => runtime.block_on(down()),
        Command::Status => status(),
        Command::Kubeconfig => kubeconfig(),
        Command::Volumes { kubeconfig, folder } => runtime.block_on(volumes(&kubeconfig, folder)),
        Command::StandIn => runtime.block_on(stand_in()),
    }
}

fn build(node: bool) -> Result<()> {
    let found = binaries::ensure()?;
    println!(
        "kube-apiserver {} at {}",
        found.kubernetes_version()?,
        found.kube_apiserver.display()
    );
    if node {
        let store = node::ensure_images(&node::ensure()?)?;
        let names: Vec<_> = images::ALL.iter().flat_map(|recipe| recipe.names).copied().collect();
        println!("images {} at {}", names.join(", "), store.display());
    }
    Ok(())
}

async fn up(with_node: bool) -> Result<()> {
    let (site, binaries, options) = (Site::usual()?, binaries::ensure()?, Options::default());
    let cluster = if with_node {
        build(true)?;
        let program = std::env::current_exe().context("find this program")?;
        let volumes = (program, ["cluster", "volumes"].map(str::to_owned).to_vec());
        site.up_with_node(&binaries, &options, &NodeSetup { volumes }).await?
    } else {
        site.up(&binaries, &options).await?
    };
    println!("Kubernetes {} at {}", cluster.version, cluster.url);
    println!("export KUBECONFIG={}", cluster.kubeconfig.display());
    Ok(())
}

async fn down() -> Result<()> {
    let ended = Site::usual()?.down().await?;
    println!("{ended} processes ended");
    Ok(())
}

fn status() -> Result<()> {
    let Some(cluster) = Site::usual()?.status()? else {
        println!("no cluster");
        return Ok(());
    };
    println!("Kubernetes {} at {}", cluster.version, cluster.url);
    for process in &cluster.processes {
        let state = if process.runs() { "runs" } else { "has ended" };
        println!(
            "{:<24} process {:<8} port {:<6} {state}",
            process.name,
            process.pid,
            process.port.map_or_else(|| "-".to_owned(), |port| port.to_string())
        );
    }
    Ok(())
}

fn kubeconfig() -> Result<()> {
    let cluster =
        Site::usual()?.status()?.context("no cluster: start one with `cargo xtask cluster up`")?;
    println!("{}", cluster.kubeconfig.display());
    Ok(())
}

async fn volumes(kubeconfig: &Path, folder: PathBuf) -> Result<()> {
    node::serve_volumes(testbed::detached::config(kubeconfig).await?, folder).await
}

async fn stand_in() -> Result<()> {
    let client = running()?.client().await?;
    let _worker = PodStandIn::start(client, StandInOptions::default()).await?;
    println!("pods become ready without running; Ctrl-C ends this");
    tokio::signal::ctrl_c().await.context("wait for Ctrl-C")
}

fn running() -> Result<Cluster> {
    Site::usual()?.status()?.context("no cluster: start one with `cargo xtask cluster up`")
}
