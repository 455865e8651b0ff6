//! What the tests of the demo share: the built binary as a child process with a temporary folder of its
//! own, its output as it comes, kubectl through the line that it prints. Holds no assertion about it.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longest wait for anything: a machine shared by many builds is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// The moves of the exercise, as they are shown.
pub(crate) const MOVES: [&str; 6] = [
    "STATE TRANSITION: New -> Pending ",
    "STATE TRANSITION: Pending -> Provisioning ",
    "STATE TRANSITION: Provisioning -> Configuring ",
    "STATE TRANSITION: Configuring -> Deploying ",
    "STATE TRANSITION: Deploying -> Verifying ",
    "STATE TRANSITION: Verifying -> Ready ",
];

/// How long a demo may take to end after it was told to.
pub(crate) const TO_END: Duration = Duration::from_secs(5);

/// Nothing when the programs are here; else `SKIPPED` is said, or the test fails where that was asked.
pub(crate) fn require(kubectl: bool) -> Option<()> {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| value == "1");
    let skipped = |reason: &str| {
        // The macros' output would be hidden by the test harness.
        writeln!(std::io::stderr(), "SKIPPED: {reason}").expect("standard error takes a line");
        None
    };
    if is_set("STEADFAST_HERMETIC") {
        return skipped("STEADFAST_HERMETIC=1 leaves out what needs programs of the machine");
    }
    let mut missing = Vec::new();
    if localnode::programs::find().is_none() {
        missing.push("PostgreSQL's programs (postgres, initdb, psql)");
    }
    let client = Command::new("kubectl").args(["version", "--client"]).output();
    if kubectl && !client.is_ok_and(|output| output.status.success()) {
        missing.push("kubectl");
    }
    if missing.is_empty() {
        return Some(());
    }
    let missing = missing.join(" and ");
    assert!(!is_set("STEADFAST_REQUIRE_ALL"), "required and not on this machine: {missing}");
    skipped(&format!("not on this machine: {missing}"))
}

/// A running demo. Dropping it kills it.
pub(crate) struct Demo {
    child: Child,
    output: Arc<Mutex<String>>,
    readers: Vec<std::thread::JoinHandle<()>>,
    folder: TempDir,
}

impl Demo {
    /// Starts `steadfast demo` with these arguments, and a temporary folder that is empty.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.arg("demo").args(arguments);
        Self::run(command)
    }

    /// The same with a program of the caller's.
    pub(crate) fn run(mut command: Command) -> Self {
        // Short, since sockets lie below it; passable, since the server is another user.
        let folder = tempfile::Builder::new().prefix("sfd").tempdir_in("/tmp").expect("a folder");
        let passable = std::fs::Permissions::from_mode(0o711);
        std::fs::set_permissions(folder.path(), passable).expect("its mode can be set");
        let mut child = command
            .process_group(0)
            .env("TMPDIR", folder.path())
            .env_remove("STEADFAST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the demo starts");
        let output = Arc::new(Mutex::new(String::new()));
        let readers = vec![
            gather(child.stdout.take().expect("piped"), Arc::clone(&output)),
            gather(child.stderr.take().expect("piped"), Arc::clone(&output)),
        ];
        Self { child, output, readers, folder }
    }

    /// Everything that it wrote so far, logs included.
    pub(crate) fn output(&self) -> String {
        self.output.lock().expect("no reader panics").clone()
    }

    /// Its temporary folder, below which all its files lie.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until the output holds the text.
    pub(crate) fn until_said(&mut self, text: &str) {
        let began = Instant::now();
        while !self.output().contains(text) {
            let ended = self.child.try_wait().expect("it can be asked");
            assert!(ended.is_none(), "ended ({ended:?}) without {text:?}:\n{}", self.output());
            assert!(began.elapsed() < PATIENCE, "never said {text:?}:\n{}", self.output());
            // poll: the output of another process
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a process of a pod runs.
    pub(crate) fn until_a_process_runs(&self, text: &str) {
        let runs = || processes_below(self.folder()).iter().any(|line| line.contains(text));
        until(&format!("a process of {text}"), runs);
    }

    /// Sends a signal, by name, to its whole group, as a terminal does.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), "--", &format!("-{}", self.child.id())])
            .status()
            .expect("kill runs");
        assert!(sent.success());
    }

    /// Waits for its end; answers status and output, and how long that took.
    pub(crate) fn end(&mut self) -> (ExitStatus, String, Duration) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end:\n{}", self.output());
            // poll: another process's end
            std::thread::sleep(Duration::from_millis(20));
        };
        let took = began.elapsed();
        for reader in self.readers.drain(..) {
            reader.join().expect("no reader panics");
        }
        (status, self.output(), took)
    }

    /// Watches, for at most ten seconds, until no process and no file of it is left.
    pub(crate) fn leaves_nothing(&self) {
        let files = || -> Vec<String> {
            let entries = std::fs::read_dir(self.folder()).into_iter().flatten();
            entries
                .filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned()))
                .collect()
        };
        let began = Instant::now();
        loop {
            let (processes, files) = (processes_below(self.folder()), files());
            if processes.is_empty() && files.is_empty() {
                return;
            }
            let left = format!("{files:?}\n{processes:#?}");
            assert!(began.elapsed() < Duration::from_secs(15), "left behind: {left}");
            // poll: processes' ends and removed files, which nothing announces to us
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The kubeconfig of the line that it printed.
    pub(crate) fn kubeconfig(&self) -> String {
        let output = self.output();
        let line = output.lines().find_map(|line| line.strip_prefix("export KUBECONFIG="));
        line.expect("the line was printed").to_owned()
    }

    /// Runs kubectl through the printed line; answers its output, and fails where it fails.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.console(arguments).output().expect("kubectl runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?}: {errors}\n{}", self.output());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// kubectl with these arguments, ready to start.
    pub(crate) fn console(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(arguments).env("KUBECONFIG", self.kubeconfig()).env("HOME", self.folder());
        // What it caches about the cluster would lie among the demo's files.
        command.args(["--cache-dir", "/dev/null/none"]);
        command
    }

    /// The answer of `kubectl get … -o json`.
    pub(crate) fn get(&self, arguments: &[&str]) -> serde_json::Value {
        let text = self.kubectl(&[&["get"], arguments, &["-o", "json"]].concat());
        serde_json::from_str(&text).expect("JSON")
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its keepers need a moment; nothing is asserted here, the test may be failing already.
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(10)
            && std::fs::read_dir(self.folder()).is_ok_and(|entries| entries.count() > 0)
        {
            // poll: files that other processes remove
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn gather(
    pipe: impl Read + Send + 'static,
    output: Arc<Mutex<String>>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut output = output.lock().expect("no reader panics");
            output.push_str(&line);
            output.push('\n');
        }
    })
}

/// Waits until it holds, or fails.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "never came: {what}");
        // poll: other processes, which cannot tell us
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Command lines of all living processes.
pub(crate) fn command_lines() -> Vec<(String, std::path::PathBuf)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()))
        .filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let state = stat.rsplit(") ").next()?.chars().next()?;
            let at = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            (!matches!(state, 'Z' | 'X')).then_some((words, at))
        })
        .collect()
}

/// Command lines of the processes that work in a folder, or name it.
pub(crate) fn processes_below(folder: &Path) -> Vec<String> {
    let text = folder.to_string_lossy().into_owned();
    let all = command_lines().into_iter();
    all.filter(|(words, at)| at.starts_with(folder) || words.contains(&text))
        .map(|(words, _)| words)
        .collect()
}

/// Places of the texts, which must all be there, each after the one before.
pub(crate) fn assert_in_order(output: &str, texts: &[&str]) {
    let mut from = 0;
    for text in texts {
        let found = output[from..].find(text);
        assert!(found.is_some(), "{text:?} is missing, or not in order:\n{output}");
        from += found.unwrap_or_default() + text.len();
    }
}
