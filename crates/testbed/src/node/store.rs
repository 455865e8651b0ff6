//! All images of `images::ALL` as containerd keeps them, unpacked once and lent to every node.
//!
//! Importing an image takes seconds and its size again on the disk, for every node of every test. So it is done
//! once for each set of images, and a node gets it by mounts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::network::succeed;
use super::programs::{CONTAINERD_VERSION, NodePrograms};
use super::room::Room;
use crate::cache;
use crate::images::{self, Recipe};

const LEND: &str = include_str!("lend.sh");
/// Far above what containerd needs to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The store's folder, if it is built.
///
/// # Errors
/// It is not built.
pub(crate) fn find() -> Result<PathBuf> {
    let folder = folder()?;
    let built = folder.is_dir().then_some(folder);
    built.context("the images are not unpacked: run `cargo xtask cluster build --node`")
}

/// The store's folder; builds every image that is missing, and unpacks them all if one was.
///
/// # Errors
/// An image cannot be built, or containerd does not take it.
pub fn ensure(programs: &NodePrograms) -> Result<PathBuf> {
    let built: Vec<PathBuf> = images::ALL.iter().map(Recipe::ensure).collect::<Result<_>>()?;
    images::prepare()?;
    let folder = folder()?;
    let parent = folder.parent().context("the store lies in a folder")?;
    // The lock lives as long as the open file; a killed build leaves no stale lock behind.
    let lock = File::create(parent.join(".store.lock")).context("create the store's lock file")?;
    lock.lock().context("wait for another process to unpack")?;
    if !folder.is_dir() {
        eprintln!("testbed: unpacking {} images", built.len());
        let work = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(parent);
        let work = work.context("make a folder for the store")?;
        fill(programs, &built, work.path())?;
        fs::rename(work.path().join("root"), &folder).context("put the store in place")?;
    }
    Ok(folder)
}

/// Gives a room's containerd, not yet started, the images of a store.
pub(crate) fn lend(store: &Path, room: &Room, root: &Path) -> Result<()> {
    let (store, root) = (store.display().to_string(), root.display().to_string());
    room.run("/bin/sh", &["-c", LEND, "lend", &store, &root]).context("lend images").map(drop)
}

/// Named by all that goes into it.
fn folder() -> Result<PathBuf> {
    let digests: Vec<String> = images::ALL.iter().map(Recipe::digest).collect();
    let words = digests.iter().map(String::as_str).chain([CONTAINERD_VERSION]);
    Ok(cache::folder()?.join("images").join(format!("store-{}", images::short_digest(words))))
}

fn fill(programs: &NodePrograms, built: &[PathBuf], work: &Path) -> Result<()> {
    let (settings, socket) = (work.join("containerd.toml"), work.join("socket"));
    let text = format!(
        "version = 3\nroot = \"{}\"\nstate = \"{}\"\n[grpc]\naddress = \"{}\"\n",
        work.join("root").display(),
        work.join("state").display(),
        socket.display()
    );
    fs::write(&settings, text).context("write containerd's settings")?;
    let mut containerd = start(programs, &settings, &work.join("log"))?;
    let ctr = |arguments: &[&str]| {
        let mut command = Command::new(programs.containerd.join("ctr"));
        command.arg("--address").arg(&socket).args(["--namespace", "k8s.io"]).args(arguments);
        command
    };
    let answers = || succeed(&mut ctr(&["version"])).is_ok();
    let outcome = wait_until("containerd", answers).and_then(|()| {
        built.iter().try_for_each(|image| images::feed(image, &mut ctr(&["images", "import", "-"])))
    });
    let log = fs::read_to_string(work.join("log")).unwrap_or_default();
    end(&mut containerd).and(outcome).with_context(|| format!("containerd said:\n{log}"))
}

/// In a mount namespace of its own, so that no mount of its making outlives it.
fn start(programs: &NodePrograms, settings: &Path, log: &Path) -> Result<Child> {
    let log = File::create(log).context("open containerd's log")?;
    Command::new("unshare")
        .args(["--mount", "--propagation=private"])
        .arg(programs.containerd.join("containerd"))
        .arg("--config")
        .arg(settings)
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("share containerd's log")?)
        .stderr(log)
        .spawn()
        .context("start containerd")
}

/// Ends it in good order: its databases are copied later.
fn end(containerd: &mut Child) -> Result<()> {
    let number = i32::try_from(containerd.id()).context("process number")?;
    kill(Pid::from_raw(number), Signal::SIGTERM).context("end containerd")?;
    let ended = wait_until("containerd's end", || matches!(containerd.try_wait(), Ok(Some(_))));
    if ended.is_err() {
        containerd.kill().context("kill containerd")?;
        containerd.wait().context("wait for containerd")?;
    }
    ended
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        if Instant::now() > deadline {
            bail!("waited too long for {what}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
