//! Real nodes: kubelet, containerd and runc, a network for pods, kube-proxy, and a name server for the cluster.
//!
//! Every node is a set of namespaces on this machine (`room`), so nothing in it can clash with the machine or with
//! another node, and ending its first process ends it whole. Needs root and a few packages of the distribution; see
//! `README.md`.

mod cluster;
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
pub(crate) use holder::Holder;
pub(crate) use network::Network;
pub use programs::{CONTAINERD_VERSION, COREDNS_VERSION, NodePrograms, ensure, find};
pub(crate) use settings::PAUSE_IMAGE;
pub use standing::NodeSetup;
pub(crate) use standing::Standing;
pub use store::ensure as ensure_images;
pub use volumes::serve as serve_volumes;
pub use volumes::{PROVISIONER, STORAGE_CLASS};

use anyhow::Result;

use crate::images::{self, Recipe};
use crate::skip;

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
    if crate::require_or_skip()?.is_none() {
        return Ok(false);
    }
    let missing = find().and_then(|_| store::find()).and_then(|_| {
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
