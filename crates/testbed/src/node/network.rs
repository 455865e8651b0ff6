//! One network of this machine for one cluster: a number, and all that is named by it.
//!
//! The number gives the bridge's name, the addresses, the control groups and the folder. Whoever holds the
//! number's lock owns all of these, so what a killed predecessor left behind is found and removed by name. The
//! lock is an open file that every node's first process inherits: it is free when the last of them is gone.

use std::fs::{self, File, TryLockError};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::cache;

/// Ends what a number names: bridge, control groups, folder. Also run by the leash.
pub(crate) const CLEAN: &str = include_str!("clean.sh");

/// Where the locks lie: one place for all users of the machine, whatever their cache folder.
const LOCKS: &str = "/run/steadfast-testbed";

/// A number that is ours, with its bridge up.
#[derive(Debug)]
pub(crate) struct Network {
    number: u8,
    lock: File,
    folder: PathBuf,
    released: bool,
}

impl Network {
    /// Takes the first free number, removes what was left under it, and makes its bridge.
    pub(crate) fn claim() -> Result<Self> {
        fs::create_dir_all(LOCKS).with_context(|| format!("create {LOCKS}"))?;
        for number in 0..100 {
            let path = Path::new(LOCKS).join(format!("{number}.lock"));
            let lock = File::create(&path).with_context(|| format!("open {}", path.display()))?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error).context("lock a network"),
            }
            let folder = cache::folder()?.join("nodes").join(number.to_string());
            let network = Self { number, lock, folder, released: false };
            network.clean()?;
            if network.is_taken_by_others()? {
                continue;
            }
            network.make()?;
            return Ok(network);
        }
        bail!("no network number is free: a hundred clusters run, or the machine uses 10.128.0.0/9")
    }

    /// The number of a network that another process made and left running.
    pub(crate) fn clean_numbered(number: u8, folder: &Path) -> Result<()> {
        let status = Command::new("/bin/sh")
            .args(["-c", CLEAN, "clean", &number.to_string()])
            .arg(folder)
            .stdin(Stdio::null())
            .status()
            .context("run the cleaning script")?;
        ensure!(status.success(), "cleaning up network {number} ended with {status}");
        Ok(())
    }

    /// Removes bridge, control groups and folder.
    pub(crate) fn clean(&self) -> Result<()> {
        Self::clean_numbered(self.number, &self.folder)
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
        let name = self.name();
        run("ip", &["link", "add", &name, "type", "bridge"])?;
        run("ip", &["addr", "add", &format!("{}/24", self.machine()), "dev", &name])?;
        run("ip", &["link", "set", &name, "up"])?;
        for folder in control_groups()? {
            make_control_group(&folder.join(&name))?;
        }
        fs::create_dir_all(&self.folder).context("make the nodes' folder")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if !self.released {
            // What cannot be removed now is removed by whoever takes the number next.
            let _left_behind = self.clean();
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

fn output(program: &str, arguments: &[&str]) -> Result<String> {
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
