//! Finds the control plane's programs, or builds them.
//!
//! `KUBEBUILDER_ASSETS` comes first (the folder that `setup-envtest` prepares), then the cache, then a build
//! (reference/real-cluster.md section 1). Nothing here starts a program except to ask its version.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tool_module::ToolModule;

/// The Kubernetes version that is built when none is given.
pub const KUBERNETES_VERSION: &str = "v1.36.3";
/// The etcd version built with it: the one that this Kubernetes requires.
pub const ETCD_VERSION: &str = "v3.6.8";

/// The pinned Go module of the control plane.
pub const MODULE: ToolModule = ToolModule {
    name: "control-plane",
    version: KUBERNETES_VERSION,
    go_mod: include_str!("../control-plane/go.mod"),
    go_sum: include_str!("../control-plane/go.sum"),
    sources: &[],
    // Without these the programs call themselves v0.0.0-master and clients warn about version skew.
    linker_flags: "-s -w \
        -X k8s.io/component-base/version.gitVersion=v1.36.3 \
        -X k8s.io/component-base/version.gitMajor=1 \
        -X k8s.io/component-base/version.gitMinor=36",
    programs: &[
        ("etcd", "go.etcd.io/etcd/server/v3"),
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
        ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ],
};

/// Paths of the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The store.
    pub etcd: PathBuf,
    /// The API server.
    pub kube_apiserver: PathBuf,
    /// The built-in controllers. `setup-envtest` folders lack it; the cache's is used then.
    pub kube_controller_manager: Option<PathBuf>,
    /// The command line client, for tests that want one of the right version.
    pub kubectl: Option<PathBuf>,
}

impl Binaries {
    /// The version that the API server reports of itself, such as `v1.36.3`.
    ///
    /// # Errors
    /// The program cannot be run.
    pub fn kubernetes_version(&self) -> Result<String> {
        let output = Command::new(&self.kube_apiserver)
            .arg("--version")
            .output()
            .with_context(|| format!("run {} --version", self.kube_apiserver.display()))?;
        ensure!(output.status.success(), "kube-apiserver --version ended with {}", output.status);
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.trim().trim_start_matches("Kubernetes ").to_owned())
    }
}

/// The programs, if they are there already. Never builds.
pub fn find() -> Option<Binaries> {
    let built = MODULE.built();
    match assets_folder() {
        Some(assets) => from_folders(&assets, built.as_deref()),
        None => from_folders(&built?, None),
    }
}

/// The programs; builds them when they are missing (minutes, see README.md).
///
/// # Errors
/// The build failed, or `KUBEBUILDER_ASSETS` names a folder without etcd or kube-apiserver.
pub fn ensure() -> Result<Binaries> {
    if let Some(found) = find().filter(|found| found.kube_controller_manager.is_some()) {
        return Ok(found);
    }
    MODULE.ensure()?;
    find().context(
        "KUBEBUILDER_ASSETS is set, but its folder lacks etcd or kube-apiserver: correct it or unset it",
    )
}

fn assets_folder() -> Option<PathBuf> {
    env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Takes all from `folder`; the two programs that other people's folders may lack also from `spare`.
fn from_folders(folder: &Path, spare: Option<&Path>) -> Option<Binaries> {
    let program = |folder: &Path, name: &str| Some(folder.join(name)).filter(|path| path.is_file());
    let either = |name: &str| program(folder, name).or_else(|| program(spare?, name));
    Some(Binaries {
        etcd: program(folder, "etcd")?,
        kube_apiserver: program(folder, "kube-apiserver")?,
        kube_controller_manager: either("kube-controller-manager"),
        kubectl: either("kubectl"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn versions_agree_with_the_pinned_module() {
        let pinned =
            |module: &str, version: &str| MODULE.go_mod.contains(&format!("{module} {version}"));
        assert!(pinned("k8s.io/kubernetes", KUBERNETES_VERSION));
        assert!(pinned("go.etcd.io/etcd/server/v3", ETCD_VERSION));
        assert!(MODULE.linker_flags.contains(&format!("gitVersion={KUBERNETES_VERSION} ")));
        let unpinned =
            |line: &&str| line.trim_start().starts_with("k8s.io/") && line.contains(" v0.0.0 ");
        for line in MODULE.go_mod.lines().filter(unpinned) {
            let module = line.split_whitespace().next().expect("a line that is not blank");
            assert!(
                MODULE.go_mod.contains(&format!("{module} => {module} v0.36.3")),
                "{module} has no replacement"
            );
        }
    }

    #[test]
    fn a_folder_without_controllers_borrows_them() {
        let assets = tempfile::tempdir().expect("temporary folder");
        let spare = tempfile::tempdir().expect("temporary folder");
        for name in ["etcd", "kube-apiserver"] {
            fs::write(assets.path().join(name), "").expect("write");
        }
        let alone = from_folders(assets.path(), None).expect("both required programs are there");
        assert_eq!(alone.kube_controller_manager, None);

        let borrowed = spare.path().join("kube-controller-manager");
        fs::write(&borrowed, "").expect("write");
        let both = from_folders(assets.path(), Some(spare.path())).expect("both are there");
        assert_eq!(both.kube_controller_manager, Some(borrowed));

        fs::remove_file(assets.path().join("etcd")).expect("remove");
        assert_eq!(from_folders(assets.path(), Some(spare.path())), None);
    }
}
