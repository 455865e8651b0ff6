//! Options of `plan`, `explain`, `render`, `graph` and `completions`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What forecasts depend on: as the operator was started.
#[derive(Args, Clone, Debug)]
pub struct Horizon {
    /// DNS domain of the cluster, as the operator was told.
    #[arg(long, default_value = "cluster.local", env = "STEADFAST_CLUSTER_DOMAIN")]
    pub cluster_domain: String,
    /// Hosts that external dependencies may name, as the operator was told; may be repeated.
    #[arg(long = "allow-dependency", value_name = "PATTERN")]
    pub allow_dependencies: Vec<String>,
}

impl Horizon {
    /// As the kernel takes it.
    pub fn settings(&self) -> phased::Settings {
        let allow_dependencies = if self.allow_dependencies.is_empty() {
            vec!["*.svc".to_owned(), format!("*.svc.{}", self.cluster_domain)]
        } else {
            self.allow_dependencies.clone()
        };
        phased::Settings {
            cluster_domain: self.cluster_domain.clone(),
            allow_dependencies,
            ..phased::Settings::default()
        }
    }
}

/// Which cluster, and as whom.
#[derive(Args, Clone, Debug, Default)]
pub struct Access {
    /// The kubeconfig; default: KUBECONFIG, then ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in it.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace of what names none; default: that of the context.
    #[arg(long, short = 'n', value_name = "NAMESPACE")]
    pub namespace: Option<String>,
}

/// Where manifests are.
#[derive(Args, Clone, Debug)]
pub struct Manifests {
    /// File, folder, or `-` for standard input; may be repeated.
    #[arg(long = "filename", short = 'f', value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Look into folders below as well.
    #[arg(long, short = 'R')]
    pub recursive: bool,
}

/// How the answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Options of `plan`.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// Where manifests are.
    #[command(flatten)]
    pub manifests: Manifests,
    /// Which cluster.
    #[command(flatten)]
    pub access: Access,
    /// What forecasts depend on.
    #[command(flatten)]
    pub horizon: Horizon,
    /// Plan against an empty cluster that is only thought of.
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    pub offline: bool,
    /// Forecast `kubectl apply --server-side` rather than `kubectl apply`.
    #[arg(long)]
    pub server_side: bool,
    /// With --server-side: take fields over from other managers.
    #[arg(long, requires = "server_side")]
    pub force_conflicts: bool,
    /// Field manager; default: that of kubectl.
    #[arg(long, value_name = "NAME")]
    pub field_manager: Option<String>,
    /// Show long lists and unchanged resources in full.
    #[arg(long)]
    pub all: bool,
    /// How the answer is written.
    #[arg(long, short = 'o', value_enum, default_value_t)]
    pub output: Output,
}

/// Options of `explain`.
#[derive(Args, Clone, Debug)]
pub struct Explain {
    /// KIND or KIND/NAME.
    #[arg(value_name = "KIND[/NAME]")]
    pub what: String,
    /// The name, if it does not follow the kind.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Which cluster.
    #[command(flatten)]
    pub access: Access,
    /// What plans depend on.
    #[command(flatten)]
    pub horizon: Horizon,
    /// How often the operator verifies a settled resource: its own option of this name.
    #[arg(long, default_value = "5m", value_parser = super::seconds, value_name = "DURATION")]
    pub verify_every: u32,
    /// Look into all namespaces.
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// Draw it anew when it changes, until Ctrl-C.
    #[arg(long, short = 'w', conflicts_with = "output")]
    pub watch: bool,
    /// Show long lists in full.
    #[arg(long)]
    pub all: bool,
    /// How the answer is written.
    #[arg(long, short = 'o', value_enum, default_value_t)]
    pub output: Output,
}

impl Explain {
    /// What plans depend on, as the kernel takes it.
    pub fn settings(&self) -> phased::Settings {
        let verify_every_seconds = self.verify_every.max(1);
        phased::Settings { verify_every_seconds, ..self.horizon.settings() }
    }
}

/// Options of `render`.
#[derive(Args, Clone, Debug)]
pub struct Render {
    /// Where manifests are.
    #[command(flatten)]
    pub manifests: Manifests,
    /// Namespace of what names none.
    #[arg(long, short = 'n', default_value = "default")]
    pub namespace: String,
    /// What children depend on.
    #[command(flatten)]
    pub horizon: Horizon,
}

/// A form of drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Drawing {
    /// Mermaid, for Markdown.
    Mermaid,
    /// Graphviz.
    Dot,
    /// SVG, for browsers.
    Svg,
}

/// Options of `graph`.
#[derive(Args, Clone, Debug)]
pub struct Graph {
    /// The kind.
    #[arg(value_name = "KIND")]
    pub kind: String,
    /// The form.
    #[arg(long, short = 'o', value_enum, default_value_t = Drawing::Mermaid)]
    pub output: Drawing,
}

/// Options of `completions`.
#[derive(Args, Clone, Debug)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
