//! One network of this machine for one cluster: a number, and all that is named by it.
//!
//! The number gives the bridge's name, the addresses, the control groups and the folder. Whoever holds the
//! number's lock owns all of these, so what a killed predecessor left behind is found and removed by name. The
//! lock is an open file that every node's first process inherits: it is free when the last of them is gone.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context, Result, bail, ensure};

use super::holder::{self, Holder, NUMBERS};
use crate::cache;

/// A number that is ours, with its bridge up.
#[derive(Debug)]
pub(crate) struct Network {
    number: u8,
    lock: File,
    folder: PathBuf,
    token: String,
    released: bool,
}

impl Network {
    /// Takes a free number and makes its bridge. What killed predecessors left is removed first.
    pub(crate) fn claim() -> Result<Self> {
        holder::sweep()?;
        // Not always the first: who has just ended should be seen to have left nothing.
        let start = process::id() % u32::from(NUMBERS);
        let numbers = (0..NUMBERS).cycle().skip(usize::try_from(start)?);
        for number in numbers.take(usize::from(NUMBERS)) {
            let Some(lock) = holder::lock(number)? else { continue };
            if let Some(holder) = Holder::read(number) {
                holder.remove_traces()?;
            }
            let folder = cache::folder()?.join("nodes").join(number.to_string());
            let token = format!("{} {:?}", process::id(), SystemTime::now());
            let network = Self { number, lock, folder, token, released: false };
            if network.is_taken_by_others()? {
                continue;
            }
            network.make()?;
            return Ok(network);
        }
        bail!("no network number is free: a hundred clusters run, or the machine uses 10.128.0.0/9")
    }

    /// Who holds the number now: this value, and its nodes after it.
    pub(crate) fn holder(&self) -> Holder {
        Holder { number: self.number, folder: self.folder.clone(), token: self.token.clone() }
    }

    /// Leaves it standing when this value is gone. The lock is held on by the nodes' first processes.
    pub(crate) fn release(mut self) {
        self.released = true;
    }

    /// The network's number.
    pub(crate) fn number(&self) -> u8 {
        self.number
    }

    /// Folder of everything that the nodes of this network write.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Folder of the volumes.
    pub(crate) fn volumes(&self) -> PathBuf {
        self.folder.join("volumes")
    }

    /// A handle that keeps the number taken while it is open.
    pub(crate) fn lock(&self) -> Result<File> {
        self.lock.try_clone().context("share the network's lock")
    }

    /// Name of bridge and control groups.
    pub(crate) fn name(&self) -> String {
        format!("steadfast-{}", self.number)
    }

    /// All addresses of the cluster.
    pub(crate) fn range(&self) -> String {
        format!("10.{}.0.0/16", 128 + self.number)
    }

    /// This machine's address: where the API server listens.
    pub(crate) fn machine(&self) -> Ipv4Addr {
        self.address(0, 1)
    }

    /// A node's address; the first has index 1.
    pub(crate) fn node(&self, index: u8) -> Ipv4Addr {
        self.address(0, index.saturating_add(1))
    }

    /// The addresses of a node's pods.
    pub(crate) fn pods(&self, index: u8) -> String {
        format!("{}/24", self.address(index, 0))
    }

    fn address(&self, third: u8, fourth: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 128 + self.number, third, fourth)
    }

    fn is_taken_by_others(&self) -> Result<bool> {
        let routes = output("ip", &["-4", "-o", "route", "show", "root", &self.range()])?;
        Ok(!routes.trim().is_empty())
    }

    fn make(&self) -> Result<()> {
        // Whoever has to clean up after us may have another cache folder.
        self.holder().write()?;
        let name = self.name();
        run("ip", &["link", "add", &name, "type", "bridge"])?;
        run("ip", &["addr", "add", &format!("{}/24", self.machine()), "dev", &name])?;
        run("ip", &["link", "set", &name, "up"])?;
        for folder in control_groups()? {
            make_control_group(&folder.join(&name))?;
        }
        // What is mounted there is to be seen in every node, also in one that was there before.
        let volumes = self.volumes();
        fs::create_dir_all(&volumes).context("make the volumes' folder")?;
        let volumes = volumes.display().to_string();
        run("mount", &["--bind", &volumes, &volumes])?;
        run("mount", &["--make-shared", &volumes])
    }

    /// Makes a node's control groups, below the network's: a kubelet ends what it finds below its own and does not
    /// know.
    pub(crate) fn make_control_groups(&self, node: &str) -> Result<()> {
        for folder in control_groups()? {
            make_control_group(&folder.join(self.name()).join(node))?;
        }
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if !self.released {
            // What cannot be removed now is removed by whoever takes the number next.
            let _left_behind = self.holder().remove_traces();
        }
    }
}

/// The roots of all control group hierarchies: one in version 2, several in version 1.
fn control_groups() -> Result<Vec<PathBuf>> {
    let root = Path::new("/sys/fs/cgroup");
    if root.join("cgroup.controllers").exists() {
        return Ok(vec![root.to_owned()]);
    }
    let entries = fs::read_dir(root).context("list the control groups")?;
    let folders = entries.map_while(Result::ok).map(|entry| entry.path());
    Ok(folders.filter(|path| path.join("cgroup.procs").exists()).collect())
}

fn make_control_group(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    // A new group of version 1 may use no processor until it is told which.
    for name in ["cpuset.cpus", "cpuset.mems"] {
        let (own, parent) = (folder.join(name), folder.with_file_name(name));
        if own.exists() && fs::read_to_string(&own).is_ok_and(|text| text.trim().is_empty()) {
            let text = fs::read(&parent).with_context(|| format!("read {}", parent.display()))?;
            fs::write(&own, text).with_context(|| format!("write {}", own.display()))?;
        }
    }
    Ok(())
}

/// Runs a short command that must succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<()> {
    output(program, arguments).map(drop)
}

/// What a short command that must succeed says.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<String> {
    succeed(Command::new(program).args(arguments))
}

/// What a short command says; an error holds its complaint.
pub(crate) fn succeed(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("run {command:?}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} ended with {}: {complaint}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
