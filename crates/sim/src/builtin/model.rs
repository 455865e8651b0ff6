//! What the built-in controllers can't find in the store: speeds, switches, model faults, images,
//! volumes' contents and running programs.
//!
//! Must not write to the store.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use super::pods::images::Images;
use super::pods::program::Programs;
use crate::external::Network;
use crate::external::volumes::Volumes;

/// Whether a part is played by the model or by something outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// The model does the work.
    Model,
    /// Something outside does it, through the API; the model keeps its hands off.
    External,
}

/// How long things take, in milliseconds; each draw is uniform over the range.
#[derive(Clone, Debug)]
pub struct Speeds {
    /// From a change to a controller's look at it.
    pub reaction: Range<i64>,
    /// Pulling an image that the node does not have.
    pub image_pull: Range<i64>,
    /// Sandbox, volumes and start of a container.
    pub container_start: Range<i64>,
    /// From start to the first successful readiness probe, beyond `initialDelaySeconds`.
    pub readiness: Range<i64>,
    /// An init container's run.
    pub init_run: Range<i64>,
    /// From the request to end to the end.
    pub stop: Range<i64>,
    /// Provisioning, deleting or growing a volume.
    pub volume: Range<i64>,
}

impl Default for Speeds {
    fn default() -> Speeds {
        Speeds {
            reaction: 1..20,
            image_pull: 500..3000,
            container_start: 100..500,
            readiness: 500..2000,
            init_run: 100..1000,
            stop: 100..1000,
            volume: 200..1500,
        }
    }
}

/// The world of the controllers outside the store.
pub struct Model {
    /// Speeds.
    pub speeds: Speeds,
    /// Who assigns pods to nodes.
    pub scheduler: Switch,
    /// Who runs pods.
    pub kubelet: Switch,
    /// Which images exist and which nodes hold them.
    pub images: Images,
    /// What containers run.
    pub programs: Programs,
    /// What volumes hold; outlives pods.
    pub volumes: Volumes,
    /// Who listens at which address.
    pub network: Network,
    /// Nodes whose kubelet does not answer.
    pub down: BTreeSet<String>,
    /// Storage classes whose provisioner fails, with its error text.
    pub provisioning: BTreeMap<String, String>,
    /// Storage classes whose resizer fails, with its error text.
    pub resizing: BTreeMap<String, String>,
    /// What containers have printed, by namespace, pod and container.
    pub logs: BTreeMap<(String, String, String), String>,
    rng: fastrand::Rng,
    addresses: u32,
}

impl Model {
    /// The default world of a seed.
    pub fn new(seed: u64) -> Model {
        Model {
            speeds: Speeds::default(),
            scheduler: Switch::Model,
            kubelet: Switch::Model,
            images: Images::default(),
            programs: Programs::default(),
            volumes: Volumes::default(),
            network: Network::default(),
            down: BTreeSet::new(),
            provisioning: BTreeMap::new(),
            resizing: BTreeMap::new(),
            logs: BTreeMap::new(),
            rng: fastrand::Rng::with_seed(seed ^ 0x6275_696c_7469_6e00),
            addresses: 0,
        }
    }

    /// A delay between a change and the look at it.
    pub(crate) fn reaction(&mut self) -> Duration {
        Duration::from_millis(self.draw(self.speeds.reaction.clone()).unsigned_abs())
    }

    /// A draw from a range of milliseconds; an empty range is its start.
    pub(crate) fn draw(&mut self, range: Range<i64>) -> i64 {
        if range.is_empty() { range.start } else { self.rng.i64(range) }
    }

    /// A random number for whatever needs one, such as a system identifier.
    pub(crate) fn number(&mut self) -> u64 {
        self.rng.u64(..)
    }

    /// The next pod address; addresses are not used twice.
    pub(crate) fn pod_address(&mut self) -> String {
        self.addresses += 1;
        let number = self.addresses + 1;
        format!("10.244.{}.{}", number >> 8 & 0xff, number & 0xff)
    }
}
