//! A node goes with its starter, whole; a detached one stays until it is taken down; several stand side by side.

#[path = "pods/asking.rs"]
mod asking;
mod pods;
mod waiting;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use asking::{idler, query};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use pods::{PATIENCE, exec};
use serde_json::json;
use testbed::detached::{Process, Site};
use testbed::images::POSTGRES_15;
use testbed::node::{ClusterOptions, NodeSetup};
use testbed::{Cluster, Options, node};
use waiting::wait_until;

/// Set in the process that the test starts in order to kill it.
const STARTER: &str = "TESTBED_NODE_STARTER";

/// What of a cluster is to be seen on this machine: processes with its mark or folder in their command line or
/// control group, links, routes, control groups, mounts.
fn traces(mark: &str, folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let folder_text = folder.display().to_string();
    let part_of = |text: &str| text.contains(&folder_text) || text.contains(&format!("/{mark}/"));
    for entry in fs::read_dir("/proc").into_iter().flatten().map_while(Result::ok) {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        if part_of(&read("cmdline")) || part_of(&read("cgroup")) {
            found.insert(format!("process {}", read("cmdline").replace('\0', " ")));
        }
    }
    for entry in fs::read_dir("/sys/class/net").into_iter().flatten().map_while(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == mark || name.starts_with(&format!("{mark}-")) {
            found.insert(format!("link {name}"));
        }
    }
    for entry in fs::read_dir("/sys/fs/cgroup").into_iter().flatten().map_while(Result::ok) {
        if entry.path().join(mark).exists() {
            found.insert(format!("control group {}", entry.path().display()));
        }
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    found.extend(mounts.lines().filter(|line| part_of(line)).map(|line| format!("mount {line}")));
    if folder.exists() {
        found.insert(format!("folder {folder_text}"));
    }
    found
}

/// Who has a cluster's number, in the words of the file that is locked while it is taken.
fn holder(mark: &str) -> String {
    let number = mark.trim_start_matches("steadfast-");
    fs::read_to_string(format!("/run/steadfast-testbed/{number}.lock")).unwrap_or_default()
}

/// What is left of a cluster that had its number as `holder` says. The number is free when the cluster has gone, and
/// any other test may take it: whoever does has seen to it that nothing was left, and what is there is its own.
fn left_of(mark: &str, folder: &Path, holder: &str) -> BTreeSet<String> {
    let found = traces(mark, folder);
    if self::holder(mark) == holder { found } else { BTreeSet::new() }
}

async fn run_a_pod(cluster: &Cluster) -> Result<()> {
    cluster.load(&POSTGRES_15).await?;
    let pods = Api::<Pod>::default_namespaced(cluster.plane().client().await?);
    pods::run(&pods, idler("idler")).await
}

/// The part of the next test that runs in a process of its own: runs a pod, says so, then waits to be killed.
#[tokio::test]
async fn starter() -> Result<()> {
    if std::env::var_os(STARTER).is_none() {
        return Ok(());
    }
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    run_a_pod(&cluster).await?;
    // The harness captures the macros' output, not this.
    writeln!(std::io::stderr(), "started {} {}", cluster.mark(), cluster.folder().display())?;
    // poll: nothing; the parent test kills this process long before
    std::io::stdin().read_line(&mut String::new())?;
    bail!("nobody killed the starter before its input ended")
}

/// A process with a cluster in which a pod runs.
struct Started {
    process: Child,
    // Kept open: the process writes to it.
    _output: BufReader<ChildStderr>,
    mark: String,
    folder: PathBuf,
    holder: String,
}

fn start() -> Result<Started> {
    let mut process = Command::new(std::env::current_exe()?)
        .args(["--exact", "starter"])
        .env(STARTER, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut output = BufReader::new(process.stderr.take().context("a pipe was asked for")?);
    let mut lines = output.by_ref().lines().map_while(Result::ok);
    let told = lines.find_map(|line| Some(line.strip_prefix("started ")?.to_owned()));
    let told = told.context("the starter ended before its pod ran")?;
    let (mark, folder) = told.split_once(' ').context("a mark and a folder")?;
    let (mark, folder) = (mark.to_owned(), PathBuf::from(folder));
    let holder = holder(&mark);
    Ok(Started { process, _output: output, mark, folder, holder })
}

fn nothing_stays(mark: &str, folder: &Path, holder: &str) -> Result<()> {
    let left = || left_of(mark, folder, holder);
    wait_until("for every trace to go", PATIENCE, || left().is_empty())
        .with_context(|| format!("{:?} is left", left()))
}

#[test]
fn a_killed_starter_leaves_nothing_behind() -> Result<()> {
    if !node::require_or_skip(&[POSTGRES_15])? {
        return Ok(());
    }
    let Started { mut process, mark, folder, holder, .. } = start()?;
    let seen = traces(&mark, &folder);
    for kind in ["process", "link", "control group", "folder"] {
        ensure!(seen.iter().any(|trace| trace.starts_with(kind)), "no {kind} in {seen:?}");
    }
    ensure!(seen.iter().any(|trace| trace.contains("sleep infinity")), "no pod in {seen:?}");

    process.kill()?;
    process.wait()?;
    nothing_stays(&mark, &folder, &holder)
}

/// Number of the guard that cleans up after a process: its child with that name.
fn guard(starter: u32) -> Result<i32> {
    for entry in fs::read_dir("/proc")?.map_while(Result::ok) {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let parent = read("stat").rsplit_once(") ").map(|(_, rest)| rest.to_owned());
        let parent = parent.and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        if parent == Some(starter) && read("cmdline").contains("testbed-guard") {
            return Ok(entry.file_name().to_string_lossy().parse()?);
        }
    }
    bail!("process {starter} has no guard")
}

#[tokio::test]
async fn what_a_killed_guard_leaves_is_removed_by_the_next_cluster() -> Result<()> {
    if !node::require_or_skip(&[POSTGRES_15])? {
        return Ok(());
    }
    let Started { mut process, mark, folder, holder, .. } = start()?;
    killpg(Pid::from_raw(guard(process.id())?), Signal::SIGKILL)?;
    process.kill()?;
    process.wait()?;
    let left = || left_of(&mark, &folder, &holder);
    let runs = || left().iter().any(|trace| trace.starts_with("process"));
    wait_until("for the node to end without its guard", PATIENCE, || !runs())?;

    let _next = Cluster::start(ClusterOptions { nodes: 0, ..ClusterOptions::default() }).await?;
    ensure!(left().is_empty(), "{:?} is left", left());
    Ok(())
}

#[tokio::test]
async fn two_nodes_share_a_cluster_and_leave_nothing_behind() -> Result<()> {
    if !node::require_or_skip(&[POSTGRES_15])? {
        return Ok(());
    }
    let cluster = Cluster::start(ClusterOptions { nodes: 2, ..ClusterOptions::default() }).await?;
    let (mark, folder) = (cluster.mark(), cluster.folder().to_owned());
    let holder = holder(&mark);
    cluster.load(&POSTGRES_15).await?;
    let pods = Api::<Pod>::default_namespaced(cluster.plane().client().await?);
    for name in &cluster.nodes() {
        let mut pod = pods::database(name);
        pod["spec"]["nodeName"] = json!(name);
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    }
    let ready = |pod: Option<&Pod>| pod.is_some_and(pods::is_ready);
    for name in &cluster.nodes() {
        pods::wait(&pods, name, ready).await?;
    }
    for (asker, other) in [("node-1", "node-2"), ("node-2", "node-1")] {
        let address = pods.get(other).await?.status.and_then(|status| status.pod_ip);
        let address = address.context("a running pod has an address")?;
        let answer = query(&pods, asker, &address, "SELECT 40 + 2").await?;
        ensure!(answer == "42", "{asker} asked {other}: {answer}");
        // The name server is on the first node alone.
        let found = exec(&pods, asker, &["getent", "hosts", "kubernetes.default"]).await?;
        ensure!(found.starts_with("10.96.0.1 "), "{found}");
    }
    drop(cluster);
    nothing_stays(&mark, &folder, &holder)
}

#[tokio::test]
async fn a_detached_node_stays_until_it_is_taken_down() -> Result<()> {
    if !node::require_or_skip(&[])? {
        return Ok(());
    }
    let binaries = testbed::binaries::find().context("found a moment ago")?;
    let folder = tempfile::tempdir()?;
    let site = Site::at(folder.path());
    let note = folder.path().join("volumes-called-with");
    let script = format!("echo \"$@\" >'{}'; exec sleep infinity", note.display());
    let volumes = ("/bin/sh".into(), ["-c", &script, "volumes"].map(str::to_owned).to_vec());
    let setup = NodeSetup { volumes };
    let cluster = site.up_with_node(&binaries, &Options::default(), &setup).await?;
    ensure!(cluster.processes.iter().all(Process::runs), "{cluster:?}");
    let nodes = Api::<Node>::all(cluster.client().await?).list(&ListParams::default()).await?;
    let names: Vec<_> = nodes.iter().map(ResourceExt::name_any).collect();
    ensure!(names == ["node-1"], "{names:?}");
    wait_until("for the volume provisioner", PATIENCE, || note.exists())?;
    let called = fs::read_to_string(&note)?;
    ensure!(called.starts_with(&cluster.kubeconfig.display().to_string()), "{called}");
    let place = PathBuf::from(called.trim().split(' ').next_back().context("a volumes' folder")?);
    let nodes_folder = place.parent().context("the volumes lie in the nodes' folder")?;
    let number = nodes_folder.file_name().context("a number")?.to_string_lossy().into_owned();
    let mark = format!("steadfast-{number}");
    let holder = holder(&mark);
    ensure!(!traces(&mark, nodes_folder).is_empty(), "no trace of a running node");

    site.down().await?;
    ensure!(cluster.processes.iter().all(|process| !process.runs()), "{cluster:?}");
    let left = left_of(&mark, nodes_folder, &holder);
    ensure!(left.is_empty(), "{left:?} is left");
    Ok(())
}
