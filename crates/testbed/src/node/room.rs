//! The place where a node's programs run: namespaces of their own for processes, mounts, network and host name,
//! and a cable to the cluster's bridge.
//!
//! Ending the first process ends everything in it. What the room leaves on the machine has the network's
//! number in its name, and `clean.sh` removes it.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::network::{self, Network};
use crate::programs::Group;

const FIRST: &str = include_str!("room.sh");
/// Far above the milliseconds that it takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A node's namespaces, held by their first process.
#[derive(Debug)]
pub(crate) struct Room {
    /// `unshare`, the parent of the first process; none once it was let go.
    holder: Option<Child>,
    /// Number of the first process.
    first: u32,
}

/// One node in a network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) network: &'a Network,
    /// Counted from 1.
    pub(crate) index: u8,
}

impl Place<'_> {
    /// Name of the node, and host name of its room.
    pub(crate) fn name(self) -> String {
        format!("node-{}", self.index)
    }

    /// The node's folder.
    pub(crate) fn folder(self) -> PathBuf {
        self.network.folder().join(self.name())
    }

    /// The node's own address.
    pub(crate) fn address(self) -> Ipv4Addr {
        self.network.node(self.index)
    }
}

impl Room {
    /// Makes the namespaces and plugs the cable in. They end with us if the group does.
    pub(crate) fn open(place: Place<'_>, group: &Group) -> Result<Self> {
        let folder = place.folder();
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        place.network.make_control_groups(&place.name())?;
        // Of a room that was here before.
        let _not_there = fs::remove_file(folder.join("ready"));
        let log = File::create(folder.join("room.log")).context("open a room's log")?;
        let leashed = matches!(group, Group::Leashed(_));
        let mut holder = Command::new("unshare")
            .args(["--mount", "--net", "--pid", "--uts", "--ipc", "--propagation=slave"])
            .args(["--fork", "--kill-child", "/bin/sh", "-c", FIRST, "room"])
            .arg(&folder)
            .arg(place.name())
            .arg(if leashed { "leashed" } else { "detached" })
            .current_dir("/")
            .stdin(if leashed { Stdio::piped() } else { Stdio::null() })
            // Never written to: an open lock keeps the network's number taken.
            .stdout(place.network.lock()?)
            .stderr(log)
            .process_group(group.number()?)
            .spawn()
            .context("start unshare")?;
        let ready = wait_until_ready(&mut holder, &folder);
        let first = ready.and_then(|()| only_child(holder.id()));
        let mut room = Self { holder: Some(holder), first: 0 };
        room.first = first?;
        room.connect(place)?;
        Ok(room)
    }

    /// A command that runs in the room.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(self.entry()).arg(program).current_dir("/");
        command
    }

    /// Arguments of `nsenter` before a program's path.
    pub(crate) fn entry(&self) -> [String; 7] {
        let target = self.first.to_string();
        ["--target", &target, "--mount", "--net", "--pid", "--uts", "--ipc"].map(str::to_owned)
    }

    /// Number of the first process.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Lets the room live on without us.
    pub(crate) fn release(mut self) -> u32 {
        self.holder = None;
        self.first
    }

    /// Runs a short command in the room; it must succeed.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        network::succeed(self.command(Path::new(program)).args(arguments))
    }

    /// The way to another node's pods.
    pub(crate) fn add_route(&self, pods: &str, through: Ipv4Addr) -> Result<()> {
        self.run("ip", &["route", "replace", pods, "via", &through.to_string()]).map(drop)
    }

    fn connect(&self, place: Place<'_>) -> Result<()> {
        let Place { network, index } = place;
        let cable = format!("{}-{index}", network.name());
        let first = self.first.to_string();
        let address = place.address().to_string();
        // Of a room that was here before; the kernel takes its time to remove it.
        let _not_there = network::run("ip", &["link", "delete", &cable]);
        network::run(
            "ip",
            &["link", "add", &cable, "type", "veth", "peer", "name", "eth0", "netns", &first],
        )?;
        network::run("ip", &["link", "set", &cable, "master", &network.name(), "up"])?;
        self.run("ip", &["address", "add", &format!("{address}/24"), "dev", "eth0"])?;
        self.run("ip", &["link", "set", "eth0", "up"])?;
        self.run("ip", &["route", "add", "default", "via", &network.machine().to_string()])?;
        network::run("ip", &["route", "replace", &network.pods(index), "via", &address])?;
        // Two pods of one node meet on its bridge; only with this are answers of a Service translated back.
        let settings = "echo 1 >/proc/sys/net/ipv4/ip_forward && \
            echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables";
        self.run("/bin/sh", &["-c", settings]).map(drop)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(holder) = &mut self.holder {
            // Its child is killed with it, and waited for by the kernel before the namespaces go.
            let _already_gone = holder.kill();
            let _already_reaped = holder.wait();
        }
    }
}

fn wait_until_ready(holder: &mut Child, folder: &Path) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !folder.join("ready").exists() {
        if let Some(status) = holder.try_wait().context("look at unshare")? {
            let log = fs::read_to_string(folder.join("room.log")).unwrap_or_default();
            bail!("a node's namespaces cannot be made ({status}): {log}");
        }
        if Instant::now() > deadline {
            bail!("a node's namespaces are not ready in time");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Number of the one child that a process has.
pub(crate) fn only_child(parent: u32) -> Result<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    text.trim().parse().with_context(|| format!("process {parent} has children {text:?}"))
}
