//! A served cluster and the machine's kubectl in front of it.
//!
//! Says so loudly where kubectl is missing, and fails there if STEADFAST_REQUIRE_ALL=1.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use sim::Cluster;
use sim::server::Server;
use tokio::io::BufReader;
use tokio::process::Command;

pub(crate) struct Console {
    pub(crate) cluster: Cluster,
    _server: Server,
    folder: PathBuf,
}

pub(crate) struct Output {
    pub(crate) success: bool,
    pub(crate) text: String,
    pub(crate) errors: String,
}

impl Console {
    /// A served cluster and a kubeconfig; none where kubectl is not installed.
    pub(crate) async fn open(name: &str) -> Option<Console> {
        let installed = Command::new("kubectl")
            .args(["version", "--client"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await;
        if !installed.is_ok_and(|status| status.success()) {
            assert!(
                std::env::var("STEADFAST_REQUIRE_ALL").as_deref() != Ok("1"),
                "kubectl is not installed, and STEADFAST_REQUIRE_ALL=1 does not let this test be skipped"
            );
            eprintln!("SKIPPED: kubectl is not installed");
            return None;
        }
        let cluster = Cluster::new(1);
        let server = Server::start(&cluster).await.unwrap();
        let folder =
            std::env::temp_dir().join(format!("sim-kubectl-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("kubeconfig"), server.kubeconfig()).unwrap();
        Some(Console { cluster, _server: server, folder })
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .args(arguments)
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("HOME", &self.folder)
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().await.unwrap();
        Output {
            success: output.status.success(),
            text: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command that must succeed; answers what it printed.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        assert!(output.success, "kubectl {arguments:?}: {}{}", output.text, output.errors);
        output.text
    }

    pub(crate) fn file(&self, name: &str, object: &Value) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, object.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) async fn line(
    lines: &mut tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
) -> String {
    let next = tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await;
    next.expect("kubectl prints a line within a minute").unwrap().unwrap()
}
