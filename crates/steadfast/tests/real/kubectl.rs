//! `kubectl` as the admin of a bench's cluster, its namespace the bench's.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::Bench;

pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: tempfile::NamedTempFile,
}

impl Kubectl {
    pub(crate) async fn of(bench: &Bench) -> Self {
        let program = bench.plane.binaries().kubectl.clone().expect("kubectl is there");
        let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
        std::fs::copy(bench.plane.kubeconfig_path(), kubeconfig.path()).expect("a copy");
        let kubectl = Self { program, kubeconfig };
        let namespace = format!("--namespace={}", bench.namespace);
        kubectl.run(&["config", "set-context", "--current", &namespace], b"").await;
        kubectl
    }

    /// What it says; it must succeed.
    pub(crate) async fn run(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut command = Command::new(&self.program);
        finish(command.args(arguments).env("KUBECONFIG", self.kubeconfig.path()), input).await
    }

    /// What a shell script says that calls it by name; the script must succeed.
    pub(crate) async fn script(&self, script: &str) -> String {
        let folder = self.program.parent().expect("a program lies in a folder").to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(folder).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).expect("no folder has a colon");
        let mut command = Command::new("bash");
        command.args(["-euxo", "pipefail", "-s"]).env("PATH", path);
        finish(command.env("KUBECONFIG", self.kubeconfig.path()), script.as_bytes()).await
    }
}

async fn finish(command: &mut Command, input: &[u8]) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    stdin.write_all(input).await.expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().await.expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
