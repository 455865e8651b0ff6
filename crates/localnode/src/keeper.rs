//! The keeper: a tiny shell process beside the node that stops the node's processes and removes its
//! folder when the node is gone, be it by `stop`, drop, panic or SIGKILL. It learns of that by the end of
//! the pipe that only this process holds, which works on every Unix and needs no unsafe code.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

const SCRIPT: &str = include_str!("keeper.sh");
/// Name of the file that proves a folder to be a node's own, so that nothing else is ever removed.
const MARK: &str = ".steadfast-node";

/// A handle on the keeper; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    inner: Arc<Mutex<Option<(Child, ChildStdin)>>>,
}

impl Keeper {
    /// Starts a keeper over `folder`, which becomes the node's to remove.
    pub(crate) fn start(folder: &Path) -> io::Result<Self> {
        std::fs::write(folder.join(MARK), "This folder belongs to a running steadfast node.\n")?;
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "steadfast-keeper"])
            .arg(folder)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let stdin =
            child.stdin.take().ok_or_else(|| io::Error::other("the keeper has no input"))?;
        Ok(Self { inner: Arc::new(Mutex::new(Some((child, stdin)))) })
    }

    /// Tells of a process that leads a group of its own. Fails when the keeper is gone.
    pub(crate) fn watch(&self, pid: u32) -> io::Result<()> {
        self.tell(format!("+{pid}\n"))
    }

    /// Tells that a process has ended. A keeper that is gone need not know.
    pub(crate) fn forget(&self, pid: u32) {
        let _ = self.tell(format!("-{pid}\n"));
    }

    /// Says that the processes were asked to end and had their time: they are killed at the end. A keeper
    /// that is gone has done so already.
    pub(crate) fn hurry(&self) {
        let _ = self.tell("!\n".to_owned());
    }

    fn tell(&self, line: String) -> io::Result<()> {
        match self.inner.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some((_, stdin)) => stdin.write_all(line.as_bytes()),
            None => Err(io::Error::other("the node is stopping")),
        }
    }

    /// Lets the keeper do its work and waits until it has; it bounds itself to some ten seconds.
    pub(crate) fn finish(&self) {
        let taken = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut child, stdin)) = taken {
            drop(stdin);
            // It has done its work or is gone; there is nothing left to do about either.
            let _ = child.wait();
        }
    }
}
