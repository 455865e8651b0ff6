//! A control plane that stays when its starter ends (`cargo xtask cluster`): at most one in each cache folder.
//!
//! What runs is written to a record, with each process's number and start time, so that taking it down ends
//! exactly those processes and never one that got the same number later.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::{Client, Config};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::binaries::Binaries;
use crate::cache;
use crate::control_plane::config_from;
use crate::launch::{Plant, Programs, is_port_conflict};
use crate::layout::Layout;
use crate::node::{Holder, Network, NodeSetup, Standing};
use crate::options::Options;
use crate::programs::Group;

/// How long the programs may take to end in good order.
const PATIENCE: Duration = Duration::from_secs(20);

/// What runs, as written to the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Version of the API server.
    pub version: String,
    /// The API server's address.
    pub url: String,
    /// The admin's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The programs.
    pub processes: Vec<Process>,
    /// What the node leaves on the machine.
    #[serde(default)]
    network: Option<Holder>,
}

impl Cluster {
    /// A client of the admin.
    ///
    /// # Errors
    /// The kubeconfig cannot be read.
    pub async fn client(&self) -> Result<Client> {
        Client::try_from(config(&self.kubeconfig).await?).context("build a client")
    }
}

/// Client settings from a kubeconfig file of a cluster.
///
/// # Errors
/// The file cannot be read.
pub async fn config(kubeconfig: &Path) -> Result<Config> {
    let text = fs::read_to_string(kubeconfig).context("read the cluster's kubeconfig")?;
    config_from(&text).await
}

/// One program of a detached control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Name of the program.
    pub name: String,
    /// Its process number.
    pub pid: i32,
    /// When it started, in the kernel's clock ticks since boot: tells it from a later process of that number.
    pub started: u64,
    /// Its port, if it has one that matters.
    pub port: Option<u16>,
}

impl Process {
    /// Whether this very process still runs.
    pub fn runs(&self) -> bool {
        start_time(self.pid) == Some(self.started)
    }
}

/// The place of one detached control plane: a folder with its record and contents.
#[derive(Debug, Clone)]
pub struct Site {
    folder: PathBuf,
}

impl Site {
    /// The user's: `cluster` in the cache folder.
    ///
    /// # Errors
    /// No cache folder can be named.
    pub fn usual() -> Result<Self> {
        Ok(Self { folder: cache::folder()?.join("cluster") })
    }

    /// A place of the caller's choice, for a cluster beside the usual one.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Starts a control plane that outlives this process.
    ///
    /// # Errors
    /// One runs already, or the start fails; a failed start leaves nothing running.
    pub async fn up(&self, binaries: &Binaries, options: &Options) -> Result<Cluster> {
        self.up_with(binaries, options, None).await
    }

    /// The same with a node.
    ///
    /// # Errors
    /// As [`Self::up`]; or the machine cannot have a node.
    pub async fn up_with_node(
        &self,
        binaries: &Binaries,
        options: &Options,
        setup: &NodeSetup,
    ) -> Result<Cluster> {
        self.up_with(binaries, options, Some(setup)).await
    }

    async fn up_with(
        &self,
        binaries: &Binaries,
        options: &Options,
        setup: Option<&NodeSetup>,
    ) -> Result<Cluster> {
        let _lock = lock(&self.folder)?;
        if let Some(cluster) = self.status()? {
            let idle = cluster.processes.iter().all(|process| !process.runs());
            ensure!(
                idle,
                "a cluster runs already: take it down first (`cargo xtask cluster down`)"
            );
        }
        match start(&self.folder, binaries, options, setup).await {
            Err(error) if is_port_conflict(&error) => {
                start(&self.folder, binaries, options, setup).await
            }
            outcome => outcome,
        }
    }

    /// Ends the programs of the recorded control plane and removes its contents. The number of programs
    /// ended; zero if none ran.
    ///
    /// # Errors
    /// A program does not end even when killed, or the folder cannot be removed.
    pub async fn down(&self) -> Result<usize> {
        let _lock = lock(&self.folder)?;
        let Some(cluster) = self.status()? else { return Ok(0) };
        let running: Vec<_> = cluster.processes.iter().filter(|process| process.runs()).collect();
        // The store goes last: the others write their last words to it.
        for process in running.iter().rev() {
            end(process).await?;
        }
        if let Some(holder) = &cluster.network {
            holder.clean()?;
        }
        fs::remove_dir_all(self.folder.join(STATE)).context("remove the cluster's contents")?;
        Ok(running.len())
    }

    /// The recorded control plane, if one was started and not taken down. Ask each process whether it runs.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn status(&self) -> Result<Option<Cluster>> {
        let path = record(&self.folder);
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .with_context(|| format!("read {}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
        }
    }
}

/// Subfolder with everything that belongs to the running cluster.
const STATE: &str = "state";

fn record(folder: &Path) -> PathBuf {
    folder.join(STATE).join("cluster.json")
}

fn lock(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let lock = File::create(folder.join(".lock")).context("create the cluster's lock file")?;
    lock.lock().context("wait for another `cluster` command")?;
    Ok(lock)
}

async fn start(
    folder: &Path,
    binaries: &Binaries,
    options: &Options,
    setup: Option<&NodeSetup>,
) -> Result<Cluster> {
    let state = folder.join(STATE);
    if state.exists() {
        fs::remove_dir_all(&state).context("remove the contents of an earlier cluster")?;
    }
    fs::create_dir_all(&state).context("make the cluster's folder")?;
    let network = setup.map(|_| Network::claim()).transpose()?;
    let mut options = options.clone();
    if let Some(network) = &network {
        options.address = network.machine();
        options.node_lifecycle = true;
    }
    let plant = Plant::prepare(Layout::new(&state), binaries.clone(), options)?;
    // Until `release`, a failure on the way ends what was started.
    let programs = plant.start_all(&Group::Detached).await?;
    let node = match (setup, network) {
        (Some(setup), Some(network)) => Some(Standing::start(&plant, setup, network).await?),
        _ => None,
    };
    let cluster = Cluster {
        version: binaries.kubernetes_version()?,
        url: format!("https://{}", plant.server()),
        kubeconfig: plant.layout.admin_kubeconfig(),
        processes: processes(&plant, &programs, node.as_ref())?,
        network: node.as_ref().map(Standing::holder),
    };
    let text = serde_json::to_vec_pretty(&cluster).context("write the cluster's record")?;
    fs::write(record(folder), text).context("write the cluster's record")?;
    programs.release();
    if let Some(node) = node {
        node.release();
    }
    Ok(cluster)
}

fn processes(plant: &Plant, programs: &Programs, node: Option<&Standing>) -> Result<Vec<Process>> {
    let ports = [plant.ports.etcd, plant.ports.api_server, plant.ports.controller_manager];
    let describe = |(name, pid): (&str, u32), port| {
        let pid = i32::try_from(pid).context("process number")?;
        let started = start_time(pid).with_context(|| format!("{name} has ended"))?;
        Ok(Process { name: name.to_owned(), pid, started, port })
    };
    programs
        .numbers()
        .into_iter()
        .zip(ports.map(Some))
        .chain(
            node.map(Standing::numbers).unwrap_or_default().into_iter().map(|found| (found, None)),
        )
        .map(|(program, port)| describe(program, port))
        .collect()
}

async fn end(process: &Process) -> Result<()> {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let _already_gone = kill(Pid::from_raw(process.pid), signal);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if !process.runs() {
                return Ok(());
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
    anyhow::bail!("{} (process {}) does not end", process.name, process.pid)
}

/// When a process started, from the 22nd field of `/proc/<pid>/stat`; none if it has ended (a zombie has).
fn start_time(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may itself hold blanks and parentheses.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    if state == "Z" {
        return None;
    }
    // `state` is field 3; 22 is the 19th after it.
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_of_the_same_number() {
        let pid = i32::try_from(std::process::id()).expect("process number");
        let started = start_time(pid).expect("this process runs");
        let process = |started| Process { name: "self".to_owned(), pid, started, port: None };
        assert!(process(started).runs());
        assert!(!process(started + 1).runs());
    }
}
