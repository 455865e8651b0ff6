//! Real nodes: kubelet, containerd and runc, a network for pods, kube-proxy, and a name server for the cluster.
//!
//! Every node is a set of namespaces on this machine (`room`), so nothing in it can clash with the machine or with
//! another node, and ending its first process ends it whole. Needs root and a few packages of the distribution; see
//! `README.md`.

mod cluster;
mod disk;
mod dns;
mod holder;
mod launch;
mod network;
mod programs;
mod room;
mod settings;
mod standing;
mod store;
mod volumes;

pub use cluster::{Cluster, ClusterOptions};
pub use disk::enforces_sizes;
pub(crate) use holder::Holder;
pub(crate) use network::Network;
pub use programs::{CONTAINERD_VERSION, COREDNS_VERSION, NodePrograms, ensure, find};
pub(crate) use settings::PAUSE_IMAGE;
pub use standing::NodeSetup;
pub(crate) use standing::Standing;
pub use store::ensure as ensure_images;
pub use volumes::serve as serve_volumes;
pub use volumes::{PROVISIONER, STORAGE_CLASS};

use anyhow::{Result, ensure};

use crate::binaries::KUBERNETES_VERSION;
use crate::images::{self, Recipe};
use crate::skip;

/// A kubelet must not be newer than its API server, which `KUBEBUILDER_ASSETS` may bring along.
fn check_versions(api_server: &str) -> Result<()> {
    let minor = |version: &str| version.split('.').nth(1)?.parse::<u32>().ok();
    let (served, ours) = (minor(api_server), minor(KUBERNETES_VERSION));
    ensure!(
        served >= ours,
        "the API server is {api_server}, older than the nodes' {KUBERNETES_VERSION}"
    );
    Ok(())
}

/// Whether every node has the image from the start.
fn is_lent(recipe: &Recipe) -> bool {
    images::ALL.contains(recipe)
}

/// Whether a test can have nodes with these images: `false` after printing `SKIPPED`. Never builds.
///
/// ```no_run
/// # fn main() -> anyhow::Result<()> {
/// if !testbed::node::require_or_skip(&[testbed::images::POSTGRES_15])? { return Ok(()) }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Something is missing and `STEADFAST_REQUIRE_ALL` is `1`.
pub fn require_or_skip(wanted: &[Recipe]) -> Result<bool> {
    let Some(binaries) = crate::require_or_skip()? else { return Ok(false) };
    let missing = find().and_then(|_| store::find()).and_then(|_| {
        check_versions(&binaries.kubernetes_version()?)?;
        wanted
            .iter()
            .filter(|recipe| !is_lent(recipe))
            .try_for_each(|recipe| recipe.find().map(drop))
    });
    match missing {
        Ok(()) => Ok(true),
        Err(reason) => skip::stand_aside(&format!("no node: {reason:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_does_without_an_older_api_server() {
        for (served, fits) in
            [("v1.35.9", false), ("v0.0.0-master", false), ("nonsense", false), ("v1.37.0", true)]
        {
            assert_eq!(check_versions(served).is_ok(), fits, "{served}");
        }
        assert!(check_versions(KUBERNETES_VERSION).is_ok());
    }
}
