//! Who outlives whom: an attached control plane ends with its starter, a detached one does not.

mod waiting;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use testbed::detached::{Process, Site};
use testbed::{ControlPlane, Options};
use waiting::wait_until;

/// Set in the process that the test starts in order to kill it.
const STARTER: &str = "TESTBED_STARTER";
/// Far above what is needed.
const PATIENCE: Duration = Duration::from_secs(60);

fn without_controllers() -> Options {
    Options { controllers: false, ..Options::default() }
}

/// Whether a process runs, and is not merely waiting to be reaped.
fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|status| !status.contains(") Z "))
}

/// The part of the next test that runs in a process of its own: tells what it started, then waits to be killed.
#[tokio::test]
async fn starter() -> Result<()> {
    if std::env::var_os(STARTER).is_none() {
        return Ok(());
    }
    let plane = ControlPlane::start(without_controllers()).await?;
    let folder =
        plane.kubeconfig_path().parent().context("the kubeconfig lies in a folder")?.to_owned();
    let pids: Vec<String> =
        plane.processes().await.iter().map(|(_, pid)| pid.to_string()).collect();
    // The harness captures the macros' output, not this.
    writeln!(std::io::stderr(), "started {} {}", folder.display(), pids.join(" "))?;
    // poll: nothing; the parent test kills this process long before
    std::io::stdin().read_line(&mut String::new())?;
    bail!("nobody killed the starter before its input ended")
}

#[test]
fn the_programs_end_with_a_killed_starter() -> Result<()> {
    if testbed::require_or_skip()?.is_none() {
        return Ok(());
    }
    let mut starter = Command::new(std::env::current_exe()?)
        .args(["--exact", "starter"])
        .env(STARTER, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let output = BufReader::new(starter.stderr.take().context("a pipe was asked for")?);
    let told = output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("started ")?.to_owned()));
    let told = told.context("the starter ended before it had started anything")?;
    let mut words = told.split(' ');
    let folder = PathBuf::from(words.next().context("a folder")?);
    let pids: Vec<&str> = words.collect();
    ensure!(pids.len() == 2 && pids.iter().all(|pid| runs(pid)), "{told}");

    starter.kill()?;
    starter.wait()?;
    wait_until("for the programs to end", PATIENCE, || pids.iter().all(|pid| !runs(pid)))?;
    wait_until("for the folder to go", PATIENCE, || !folder.exists())
}

#[tokio::test]
async fn a_detached_cluster_stays_until_it_is_taken_down() -> Result<()> {
    let Some(binaries) = testbed::require_or_skip()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let site = Site::at(folder.path());
    ensure!(
        site.status()?.is_none() && site.down().await? == 0,
        "there is a cluster before its start"
    );

    let cluster = site.up(&binaries, &without_controllers()).await?;
    ensure!(site.status()?.as_ref() == Some(&cluster), "the record differs from what was started");
    ensure!(
        cluster.processes.len() == 2 && cluster.processes.iter().all(Process::runs),
        "{cluster:?}"
    );
    let version = cluster.client().await?.apiserver_version().await?.git_version;
    ensure!(version == cluster.version, "{version} is served, {} recorded", cluster.version);

    let second = site.up(&binaries, &without_controllers()).await;
    ensure!(
        second.is_err_and(|error| error.to_string().contains("already")),
        "two clusters in one place"
    );
    ensure!(site.down().await? == 2, "two processes ran");
    ensure!(cluster.processes.iter().all(|process| !process.runs()), "{cluster:?}");
    ensure!(site.status()?.is_none(), "the record is still there");
    Ok(())
}
