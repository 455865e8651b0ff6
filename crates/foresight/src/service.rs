//! Whether clients notice: the fewest ready pods that each Service had on the way.
//!
//! Services without a selector, and headless ones, which give addresses to peers, are left out.

use std::collections::BTreeMap;

use phased::{Live, ObjectId};
use serde_json::Value;

use crate::pod;
use crate::world::World;

/// Services with their pods.
#[derive(Clone, Debug, Default)]
pub struct Services(BTreeMap<ObjectId, Reach>);

/// The pods behind a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Ready pods when it was first seen.
    pub before: usize,
    /// The fewest since.
    pub fewest: usize,
    /// Ready pods now.
    pub now: usize,
    /// Pods that were not ready at the worst moment, if it was below the beginning.
    pub missing: Vec<String>,
}

impl Services {
    /// Counts again.
    pub fn look(&mut self, world: &World) {
        for (id, live) in world.of_kind("Service") {
            let Some(pods) = pods_of(live, id, world) else { continue };
            let ready = pods.iter().filter(|(_, ready)| *ready).count();
            let entry = self.0.entry(id.clone()).or_insert_with(|| Reach {
                before: ready,
                fewest: ready,
                now: ready,
                missing: Vec::new(),
            });
            entry.now = ready;
            if ready < entry.fewest {
                entry.fewest = ready;
                entry.missing =
                    pods.into_iter().filter(|(_, ready)| !ready).map(|(name, _)| name).collect();
            }
        }
    }

    /// All of them, in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = (&ObjectId, &Reach)> {
        self.0.iter()
    }
}

/// Names of the pods that a Service selects, and whether they are ready; `None` for Services that
/// clients do not use.
fn pods_of(service: &Live, id: &ObjectId, world: &World) -> Option<Vec<(String, bool)>> {
    let spec = &service.value["spec"];
    let selector = spec["selector"].as_object().filter(|all| !all.is_empty())?;
    if spec["clusterIP"] == "None" || spec["publishNotReadyAddresses"] == true {
        return None;
    }
    let selected =
        |pod: &Live| selector.iter().all(|(key, value)| pod.label(key) == Value::as_str(value));
    let pods =
        world.of_kind("Pod").filter(|(pod, live)| pod.namespace == id.namespace && selected(live));
    Some(pods.map(|(pod, live)| (pod.name.clone(), pod::is_ready(live))).collect())
}
