//! Finds a node's programs, or builds those that come as Go modules.
//!
//! runc, the CNI plugins and the network tools are the distribution's packages: they are old, small and
//! everywhere. containerd is not: this kubelet no longer talks to the 1.x that distributions have.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::unistd::geteuid;

use crate::binaries::{KUBERNETES_VERSION, MODULE as CONTROL_PLANE};
use crate::tool_module::ToolModule;

/// The containerd version that is built.
pub const CONTAINERD_VERSION: &str = "v2.3.7";
/// The CoreDNS version that is built.
pub const COREDNS_VERSION: &str = "v1.15.0";

/// The node's programs of Kubernetes: of the module that pins the control plane's, so that they are of one version.
const KUBERNETES: ToolModule = ToolModule {
    name: "kubernetes-node",
    version: KUBERNETES_VERSION,
    programs: &[
        ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
        ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        ("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
    ],
    ..CONTROL_PLANE
};

const CONTAINERD: ToolModule = ToolModule {
    name: "containerd",
    version: CONTAINERD_VERSION,
    go_mod: include_str!("../../node-programs/containerd/go.mod"),
    go_sum: include_str!("../../node-programs/containerd/go.sum"),
    sources: &[],
    linker_flags: "-s -w -X github.com/containerd/containerd/v2/version.Version=v2.3.7",
    programs: &[
        ("containerd", "github.com/containerd/containerd/v2/cmd/containerd"),
        (
            "containerd-shim-runc-v2",
            "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        ),
        ("ctr", "github.com/containerd/containerd/v2/cmd/ctr"),
    ],
};

const COREDNS: ToolModule = ToolModule {
    name: "coredns",
    version: COREDNS_VERSION,
    go_mod: include_str!("../../node-programs/coredns/go.mod"),
    go_sum: include_str!("../../node-programs/coredns/go.sum"),
    // The stock program has plugins for every cloud, and takes three times as long to build.
    sources: &[("main.go", include_str!("../../node-programs/coredns/main.go"))],
    linker_flags: "-s -w",
    programs: &[("coredns", "steadfast.dev/testbed/coredns")],
};

/// Paths of a node's programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePrograms {
    /// Folder of kubelet, kube-scheduler and kube-proxy.
    pub(crate) kubernetes: PathBuf,
    /// Folder of containerd, its shim and `ctr`.
    pub(crate) containerd: PathBuf,
    /// The cluster's name server.
    pub(crate) coredns: PathBuf,
    /// Starts containers.
    pub(crate) runc: PathBuf,
    /// Folder of the plugins that give pods their network.
    pub(crate) network_plugins: PathBuf,
}

/// The programs, if all are here and this process may use them. The error says what to do.
///
/// # Errors
/// We are not root, a package is missing, or a program is not built.
pub fn find() -> Result<NodePrograms> {
    check_machine()?;
    let built = |module: &ToolModule| {
        let unbuilt = || format!("no {}: run `cargo xtask cluster build --node`", module.name);
        module.built().with_context(unbuilt)
    };
    from_folders(built(&KUBERNETES)?, built(&CONTAINERD)?, &built(&COREDNS)?)
}

/// The programs; builds what is missing (minutes, see README.md).
///
/// # Errors
/// As [`find`], or the build failed.
pub fn ensure() -> Result<NodePrograms> {
    check_machine()?;
    from_folders(KUBERNETES.ensure()?, CONTAINERD.ensure()?, &COREDNS.ensure()?)
}

fn from_folders(kubernetes: PathBuf, containerd: PathBuf, coredns: &Path) -> Result<NodePrograms> {
    Ok(NodePrograms {
        kubernetes,
        containerd,
        coredns: coredns.join("coredns"),
        runc: on_path("runc").context(PACKAGES)?,
        network_plugins: network_plugins().context(PACKAGES)?,
    })
}

const PACKAGES: &str = "a node needs the Debian packages runc, containernetworking-plugins, iproute2, nftables \
    and util-linux (`.ci/run` installs them)";

/// What no build of ours can give.
fn check_machine() -> Result<()> {
    anyhow::ensure!(geteuid().is_root(), "a node needs root: namespaces, mounts, control groups");
    for program in ["ip", "nft", "unshare", "nsenter", "mount", "runc"] {
        on_path(program).with_context(|| format!("no {program}: {PACKAGES}"))?;
    }
    network_plugins().with_context(|| format!("no CNI plugins: {PACKAGES}")).map(drop)
}

fn network_plugins() -> Option<PathBuf> {
    let places = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"].map(PathBuf::from);
    places.into_iter().find(|folder| folder.join("bridge").is_file())
}

/// Where a program lies, also looking where Debian keeps what only root uses.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_agree_with_the_pinned_modules() {
        let pins = |module: &ToolModule, path: &str| {
            module.go_mod.contains(&format!("{path} {}", module.version))
        };
        assert!(pins(&CONTAINERD, "github.com/containerd/containerd/v2"));
        assert!(pins(&COREDNS, "github.com/coredns/coredns"));
        assert!(CONTAINERD.linker_flags.ends_with(&format!("Version={CONTAINERD_VERSION}")));
        for module in [KUBERNETES, CONTAINERD, COREDNS] {
            for (_, package) in module.programs {
                assert!(module.go_mod.contains(package), "{package} is no tool of its module");
            }
        }
    }
}
