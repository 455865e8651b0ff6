//! The process group of one control plane, and the leash that ends it with its starter.
//!
//! A leash is a small shell process that leads the group and reads from a pipe held by the starter. When the
//! starter ends, however it ends, the pipe closes and the leash ends the whole group. (The kernel's own
//! "signal me when my parent dies" is bound to the starting *thread*, and test threads end early.)

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Waits for the pipe to close, then asks the group to end, removes the folder, and ends what is left,
/// itself included. It is part of the group, so the group's number cannot be used again meanwhile.
const LEASH: &str = r#"trap '' TERM INT HUP
while read -r line; do :; done
kill -TERM 0
sleep 0.3
rm -rf -- "$1"
kill -KILL 0"#;

/// Waits likewise, and then cleans up with the script, number and folder that it was given: a cluster's nodes leave
/// more behind than a folder.
const GUARD: &str = r#"trap '' TERM INT HUP
while read -r line; do :; done
kill -TERM 0
/bin/sh -c "$1" clean "$2" "$3"
kill -KILL 0"#;

/// Where new processes go, and whether they end with us.
#[derive(Debug)]
pub(crate) enum Group {
    /// All in one group, led by the leash.
    Leashed(Child),
    /// Each process leads a group of its own and outlives its starter.
    Detached,
}

impl Group {
    /// A group that ends with this process; `folder` is then removed too.
    pub(crate) fn leashed(folder: &Path) -> Result<Self> {
        Self::led_by(
            Command::new("/bin/sh").args(["-c", LEASH, "testbed-leash"]).arg(folder),
            Stdio::null(),
        )
    }

    /// A group that ends with this process; then `clean` is run with a network's number and folder. The guard
    /// keeps `lock` open until it has done that.
    pub(crate) fn guarding(number: u8, folder: &Path, clean: &str, lock: File) -> Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", GUARD, "testbed-guard", clean, &number.to_string()]).arg(folder);
        Self::led_by(&mut shell, lock.into())
    }

    fn led_by(leash: &mut Command, output: Stdio) -> Result<Self> {
        leash
            .current_dir("/")
            .stdin(Stdio::piped())
            // Nothing is ever said.
            .stdout(output)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map(Self::Leashed)
            .context("start the leash (/bin/sh)")
    }

    /// Number to hand to `process_group`; zero means a group of the process's own.
    pub(crate) fn number(&self) -> Result<i32> {
        match self {
            Self::Leashed(leash) => i32::try_from(leash.id()).context("process number"),
            Self::Detached => Ok(0),
        }
    }

    /// Ends every process of a leashed group at once and waits for the leash. Does nothing to detached ones.
    pub(crate) fn kill(&mut self) {
        let Self::Leashed(leash) = self else { return };
        // Once waited for, the number may belong to somebody else.
        if !matches!(leash.try_wait(), Ok(None)) {
            return;
        }
        if let Ok(number) = i32::try_from(leash.id()) {
            let _already_gone = killpg(Pid::from_raw(number), Signal::SIGKILL);
        }
        let _already_reaped = leash.wait();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
