//! Processes of containers: started as the unprivileged user, in a group of their own, with nothing of
//! this process's environment, known to the keeper, and never left behind.

use crate::keeper::Keeper;
use crate::log_file::LogFile;
use crate::user::RunUser;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// How long output may still be read after a process has ended, while a stray child holds the pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Most bytes of output that a probe or a query returns.
const CAPTURE_BYTES: usize = 10 << 10;

/// What to run. Arguments can be seen by every user of the machine: secrets go into `environment`.
#[derive(Clone)]
pub(crate) struct Program {
    /// The program's file.
    pub(crate) path: PathBuf,
    /// Its arguments without its name.
    pub(crate) arguments: Vec<String>,
    /// Its whole environment. May hold secrets: `Program` has no `Debug` on purpose.
    pub(crate) environment: BTreeMap<String, String>,
    /// Its working folder, always below the node's own folder.
    pub(crate) folder: PathBuf,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    /// Exit code, or 128 plus the signal, as a shell counts.
    pub(crate) code: i32,
    /// The signal that ended it, if one did.
    pub(crate) signal: Option<i32>,
}

impl Exit {
    /// An exit by code.
    pub(crate) fn with_code(code: i32) -> Self {
        Self { code, signal: None }
    }

    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::with_code(code),
            (None, Some(signal)) => Self { code: 128 + signal, signal: Some(signal) },
            (None, None) => Self::with_code(255),
        }
    }
}

/// Starts processes.
#[derive(Debug, Clone)]
pub(crate) struct Starter {
    /// The user to become, if this process is root.
    pub(crate) user: Option<RunUser>,
    /// Who cleans up after us.
    pub(crate) keeper: Keeper,
}

impl Starter {
    /// Starts a program whose output goes to `log`.
    pub(crate) fn start(
        &self,
        program: &Program,
        log: &LogFile,
        input: &str,
    ) -> io::Result<Running> {
        let mut running = self.spawn(program, input)?;
        let outputs = (running.child.stdout.take(), running.child.stderr.take());
        running.pumps.extend(outputs.0.map(|output| tokio::spawn(pump(output, log.clone()))));
        running.pumps.extend(outputs.1.map(|output| tokio::spawn(pump(output, log.clone()))));
        Ok(running)
    }

    /// Runs a program for its output (both streams, bounded), `None` when it took longer than `limit`.
    pub(crate) async fn output(
        &self,
        program: &Program,
        input: &str,
        limit: Duration,
    ) -> io::Result<Option<(Exit, String)>> {
        let mut running = self.spawn(program, input)?;
        running.on_drop = Signal::SIGKILL;
        let outputs = (running.child.stdout.take(), running.child.stderr.take());
        let all = async {
            let ((), out, err) =
                tokio::join!(running.ended(), collect(outputs.0), collect(outputs.1));
            [out, err].concat()
        };
        match tokio::time::timeout(limit, all).await {
            Ok(bytes) => {
                let exit = running.wait().await;
                Ok(Some((exit, String::from_utf8_lossy(&bytes).into_owned())))
            }
            Err(_) => Ok(None),
        }
    }

    fn spawn(&self, program: &Program, input: &str) -> io::Result<Running> {
        let mut command = Command::new(&program.path);
        command
            .args(&program.arguments)
            .env_clear()
            .envs(&program.environment)
            .current_dir(&program.folder)
            .process_group(0)
            .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(user) = &self.user {
            // The standard library also drops the supplementary groups when root changes its user.
            command.gid(user.gid).uid(user.uid);
        }
        let mut child = command.spawn()?;
        let pid = child.id().ok_or_else(|| io::Error::other("the process ended at once"))?;
        if let Some(mut stdin) = child.stdin.take() {
            let input = input.to_owned();
            tokio::spawn(async move { stdin.write_all(input.as_bytes()).await });
        }
        let running = Running {
            child,
            pid,
            keeper: self.keeper.clone(),
            exit: None,
            on_drop: Signal::SIGINT,
            pumps: Vec::new(),
        };
        self.keeper.watch(pid)?;
        Ok(running)
    }
}

/// A process that runs, with everything it started in its group.
pub(crate) struct Running {
    child: Child,
    pid: u32,
    keeper: Keeper,
    exit: Option<Exit>,
    on_drop: Signal,
    pumps: Vec<JoinHandle<()>>,
}

impl Running {
    /// Waits for the end; can be called again. What is left of the group is killed with its leader.
    pub(crate) async fn wait(&mut self) -> Exit {
        self.ended().await;
        for pump in self.pumps.drain(..) {
            // Whoever inherited the pipe may keep it open for ever; what came in time is in the log.
            let _ = tokio::time::timeout(LAST_WORDS, pump).await;
        }
        self.exit.unwrap_or(Exit::with_code(255))
    }

    async fn ended(&mut self) {
        if self.exit.is_none() {
            let exit = self.child.wait().await.map_or(Exit::with_code(255), Exit::of);
            // A group without a process left is no error.
            let _ = killpg(self.process(), Signal::SIGKILL);
            self.keeper.forget(self.pid);
            self.exit = Some(exit);
        }
    }

    /// Asks the leader to stop, then, after `grace`, kills the group.
    pub(crate) async fn stop(&mut self, signal: Signal, grace: Duration) -> Exit {
        self.signal(signal);
        match tokio::time::timeout(grace, self.wait()).await {
            Ok(exit) => exit,
            Err(_) => {
                // It may have ended in this moment.
                let _ = killpg(self.process(), Signal::SIGKILL);
                self.wait().await
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if self.exit.is_none() {
            // It may have ended in this moment.
            let _ = kill(self.process(), signal);
        }
    }

    fn process(&self) -> Pid {
        Pid::from_raw(self.pid.cast_signed())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.exit.is_none() {
            // It may have ended in this moment, and there is nobody to tell.
            let _ = match self.on_drop {
                Signal::SIGKILL => killpg(self.process(), Signal::SIGKILL),
                gentle => kill(self.process(), gentle),
            };
        }
    }
}

async fn pump(mut output: impl AsyncRead + Unpin, log: LogFile) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        log.append(&buffer[..count]);
    }
}

async fn collect(output: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let Some(mut output) = output else { return Vec::new() };
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 4 << 10];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        let room = CAPTURE_BYTES.saturating_sub(bytes.len());
        bytes.extend_from_slice(&buffer[..count.min(room)]);
    }
    bytes
}

/// Kills every process whose working folder lies below `folder`, for those that left their group.
///
/// Only where the system shows working folders under `/proc`; elsewhere the group is all there is.
pub(crate) async fn sweep(folder: &Path) {
    for _ in 0..50 {
        let strays = strays_below(folder);
        if strays.is_empty() {
            return;
        }
        for stray in strays {
            // It may be gone; the next look shows who is left.
            let _ = kill(stray, Signal::SIGKILL);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn strays_below(folder: &Path) -> Vec<Pid> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let at = std::fs::read_link(entry.path().join("cwd")).ok()?;
            at.starts_with(folder).then(|| Pid::from_raw(pid))
        })
        .collect()
}
