//! One running program: its process, its log, and an orderly end.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

use super::Group;

/// A child process that writes to a log file.
#[derive(Debug)]
pub(crate) struct Program {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts `path` in `group`, with output appended to `log`.
    pub(crate) fn start(
        name: &'static str,
        path: &Path,
        arguments: &[String],
        (group, log): (&Group, PathBuf),
    ) -> Result<Self> {
        let output =
            File::options().create(true).append(true).open(&log).context("open a program's log")?;
        let errors = output.try_clone().context("share a program's log")?;
        let child = Command::new(path)
            .args(arguments)
            .current_dir("/")
            // The programs must not pick up settings or a cluster from their surroundings.
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(group.number()?)
            .spawn()
            .with_context(|| format!("start {}", path.display()))?;
        Ok(Self { name, child, log })
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The process's number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// An error with the end of the log if the program has ended.
    pub(crate) fn check_running(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait().context("look at a child process")? {
            bail!("{} ended with {status}; its log ends with:\n{}", self.name, self.log_end());
        }
        Ok(())
    }

    /// The last lines of the log.
    pub(crate) fn log_end(&self) -> String {
        const LINES: usize = 15;
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// Asks the program to end, and insists after `patience`.
    pub(crate) async fn end(mut self, patience: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        self.signal(Signal::SIGTERM);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().context("look at a child process")? {
                return Ok(status);
            }
            sleep(Duration::from_millis(20)).await;
        }
        self.child.kill().context("kill a child process")?;
        self.child.wait().context("wait for a killed process")
    }

    /// Lets the process live on after this value is gone.
    pub(crate) fn release(mut self) {
        // Dropping a `Child` neither ends nor waits for it; only our own `Drop` does.
        self.name = "";
    }

    fn signal(&mut self, signal: Signal) {
        // Not yet waited for, so the number is still this process's.
        if matches!(self.child.try_wait(), Ok(None))
            && let Ok(number) = i32::try_from(self.child.id())
        {
            let _already_gone = kill(Pid::from_raw(number), signal);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _already_gone = self.child.kill();
            let _already_reaped = self.child.wait();
        }
    }
}
