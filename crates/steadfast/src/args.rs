//! The whole command line and the names of its environment variables.
//!
//! Must not act: `main` dispatches.

pub mod foresight;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Kubernetes operators whose status tells the truth.
#[derive(Debug, Parser)]
#[command(name = "steadfast", version, about, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How log lines are written.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, env = "STEADFAST_LOG_FORMAT")]
    pub log_format: LogFormat,
    /// Which log lines are written, such as `info` or `runner=debug`. Default: `info`; for `demo`,
    /// which shows each move itself, `warn`.
    #[arg(long, global = true, env = "STEADFAST_LOG")]
    pub log: Option<String>,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 it failed, or the resource did not become Ready; \
2 the command line is wrong; 3 the manifest is wrong. Of `plan`: 0 nothing to do; 1 error; 2 changes; \
3 refused.";

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the controllers against a cluster.
    Run(Run),
    /// Show a resource's way to Ready on an embedded cluster, then stay open for kubectl.
    Demo(Demo),
    /// Say what would happen if manifests were applied; change nothing.
    Plan(foresight::Plan),
    /// Say how resources stand, why, and what comes next.
    Explain(foresight::Explain),
    /// Print the children of resources as YAML, without a cluster.
    Render(foresight::Render),
    /// Draw the phases of a kind.
    Graph(foresight::Graph),
    /// Print a completion script for a shell.
    Completions(foresight::Completions),
    /// Print the custom resource definitions.
    Crds,
    /// Print everything to install: definitions, permissions, Deployment.
    Manifests(Manifests),
    /// Print the tables of phases, conditions and reasons in Markdown.
    #[command(hide = true)]
    Docs,
}

/// What plans depend on, common to `run` and `demo`.
#[derive(Args, Clone, Debug)]
pub struct Decisions {
    /// DNS domain of the cluster.
    #[arg(long, default_value = "cluster.local", env = "STEADFAST_CLUSTER_DOMAIN")]
    pub cluster_domain: String,
    /// Hosts that external dependencies may name; may be repeated. Default: names of the cluster.
    #[arg(long = "allow-dependency", value_name = "PATTERN")]
    pub allow_dependencies: Vec<String>,
    /// Hold each phase this long so that it can be watched, such as 15s.
    #[arg(long, default_value = "0s", value_parser = seconds, value_name = "DURATION")]
    pub phase_dwell: u32,
    /// Verify a settled resource this often.
    #[arg(long, default_value = "5m", value_parser = seconds, value_name = "DURATION")]
    pub verify_every: u32,
}

impl Decisions {
    /// As the kernel takes it.
    pub fn settings(&self) -> phased::Settings {
        let mut settings = phased::Settings {
            cluster_domain: self.cluster_domain.clone(),
            phase_dwell_seconds: self.phase_dwell,
            verify_every_seconds: self.verify_every.max(1),
            ..phased::Settings::default()
        };
        settings.allow_dependencies = if self.allow_dependencies.is_empty() {
            vec!["*.svc".to_owned(), format!("*.svc.{}", self.cluster_domain)]
        } else {
            self.allow_dependencies.clone()
        };
        settings
    }
}

/// How the operator reaches what it manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reach {
    /// By the cluster's DNS, as a pod does.
    Dns,
    /// By the addresses in EndpointSlices, where no cluster DNS answers.
    Endpoints,
}

/// Options of `run`.
#[derive(Args, Debug)]
pub struct Run {
    /// What plans depend on.
    #[command(flatten)]
    pub decisions: Decisions,
    /// Namespaces to serve; may be repeated. Default: all.
    #[arg(long = "namespace", short = 'n', value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,
    /// How servers are reached.
    #[arg(long, value_enum, default_value_t = Reach::Dns)]
    pub reach: Reach,
    /// Where /healthz, /readyz and /metrics are served; `none` for nowhere.
    #[arg(long, default_value = "0.0.0.0:8080", env = "STEADFAST_HTTP", value_parser = address)]
    pub http: Address,
    /// Passes at the same time, for each controller.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub concurrency: u16,
}

/// An address, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub Option<SocketAddr>);

/// Options of `demo`.
#[derive(Args, Debug)]
pub struct Demo {
    /// What plans depend on.
    #[command(flatten)]
    pub decisions: Decisions,
    /// The manifest to apply. Default: the exercise's `test-db`.
    #[arg(long, short = 'f', value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// End with the outcome: 0 when every resource became Ready.
    #[arg(long)]
    pub once: bool,
    /// How long `--once` waits for Ready.
    #[arg(long, default_value = "5m", value_parser = seconds, value_name = "DURATION")]
    pub timeout: u32,
    /// Use the model of PostgreSQL although its programs are installed.
    #[arg(long)]
    pub model: bool,
}

/// Options of `manifests`.
#[derive(Args, Debug)]
pub struct Manifests {
    /// Namespace to install into.
    #[arg(long, short = 'n', default_value = "steadfast")]
    pub namespace: String,
    /// Image of the operator.
    #[arg(long, default_value = concat!("steadfast:", env!("CARGO_PKG_VERSION")))]
    pub image: String,
}

/// A duration such as `90s`, `5m`, `1h`, in whole seconds.
fn seconds(text: &str) -> Result<u32, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u32 =
        digits.parse().map_err(|_| format!("`{text}` is not a duration such as 15s, 5m or 1h"))?;
    let factor = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        other => return Err(format!("unknown unit `{other}`: use s, m or h")),
    };
    number.checked_mul(factor).ok_or_else(|| format!("`{text}` is too long"))
}

fn address(text: &str) -> Result<Address, String> {
    if text == "none" {
        return Ok(Address(None));
    }
    let parsed =
        text.parse().map_err(|_| format!("`{text}` is not an address such as 0.0.0.0:8080"));
    parsed.map(|a| Address(Some(a)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_are_read_with_their_units() {
        assert_eq!(seconds("15s"), Ok(15));
        assert_eq!(seconds("15"), Ok(15));
        assert_eq!(seconds("5m"), Ok(300));
        assert_eq!(seconds("2h"), Ok(7200));
        assert!(seconds("5x").is_err());
        assert!(seconds("").is_err());
        assert!(seconds("9999999h").is_err());
    }

    #[test]
    fn dependencies_are_kept_to_names_of_the_cluster_unless_told_otherwise() {
        let cli = Cli::parse_from(["steadfast", "run", "--cluster-domain", "corp.example"]);
        let Command::Run(run) = cli.command else { unreachable!("parsed as run") };
        let allowed = run.decisions.settings().allow_dependencies;
        assert_eq!(allowed, ["*.svc", "*.svc.corp.example"]);
    }
}
