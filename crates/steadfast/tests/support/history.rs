//! Follows the store and keeps what a resource's status said, in order.

use std::sync::{Arc, Mutex};

use sim::world::World;

use super::{condition, text};

/// What was seen of one resource.
#[derive(Clone, Default)]
pub(crate) struct History(Arc<Mutex<Vec<Seen>>>);

/// One state of a resource's status.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) phase: String,
    pub(crate) ready: String,
    pub(crate) reason: String,
    pub(crate) generation: i64,
    pub(crate) observed: i64,
}

impl History {
    /// Begins to follow the Database `name`.
    pub(crate) fn of(world: &World, name: &str) -> Self {
        Self::of_kind(world, "databases", name)
    }

    /// Begins to follow a resource.
    pub(crate) fn of_kind(world: &World, plural: &'static str, name: &str) -> Self {
        let history = Self::default();
        let (seen, name) = (history.clone(), name.to_owned());
        world.check("history", move |moment| {
            if moment.change.key.plural == plural
                && moment.change.key.name == name
                && let Some(after) = &moment.change.after
            {
                let ready = condition(after, "Ready");
                let number = |pointer: &str| after.pointer(pointer).and_then(|n| n.as_i64());
                seen.0.lock().expect("no rule panics").push(Seen {
                    phase: text(after, "/status/phase"),
                    ready: text(&ready, "/status"),
                    reason: text(&ready, "/reason"),
                    generation: number("/metadata/generation").unwrap_or_default(),
                    observed: number("/status/observedGeneration").unwrap_or_default(),
                });
            }
            Ok(())
        });
        history
    }

    /// Every state.
    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.lock().expect("no rule panics").clone()
    }

    /// Phases in order, without repetition.
    pub(crate) fn phases(&self) -> Vec<String> {
        let mut phases: Vec<String> = self.all().into_iter().map(|s| s.phase).collect();
        phases.retain(|p| !p.is_empty());
        phases.dedup();
        phases
    }
}
