//! The built-in controllers and the models of scheduler, kubelet and storage behind them.
//!
//! Each controller looks at the whole store when something it watches changed or its own timer is
//! due, a small seeded delay later; with nothing to do it writes nothing. Must not await.

mod accounts;
pub(crate) mod admission;
mod changes;
mod claims;
mod disruption_budget;
mod door;
pub(crate) mod field;
mod garbage;
mod model;
mod namespace;
pub mod pods;
pub(crate) mod quota;
mod retry;
mod services;
mod stateful_set;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::{SignedDuration, Timestamp};

use crate::Core;
use changes::Changes;

pub use model::{Model, Speeds, Switch};

/// One built-in controller.
trait Controller: Send {
    /// Plural names of the resources whose changes wake it.
    fn watches(&self) -> &'static [&'static str];

    /// Brings the store one step nearer to what is wanted; returns when it wants to look again
    /// although nothing changed.
    fn sync(&mut self, core: &mut Core, model: &mut Model) -> Option<Timestamp>;
}

struct Slot {
    controller: Box<dyn Controller>,
    /// Due because something changed.
    due: Option<Timestamp>,
    /// Due because the controller said so.
    wake: Option<Timestamp>,
}

/// State of the built-in controllers that is not in the store.
pub struct Builtin {
    slots: Vec<Slot>,
    changes: Changes,
    /// Set from outside where something has changed that is not in the store.
    pub(crate) disturbed: Arc<AtomicBool>,
    /// Settings, faults and the outside world of the controllers; tests change it freely.
    pub model: Model,
}

impl Builtin {
    /// All controllers, with delays drawn from `seed`.
    pub fn new(seed: u64) -> Builtin {
        let controllers: Vec<Box<dyn Controller>> = vec![
            Box::<namespace::Namespaces>::default(),
            Box::<accounts::Accounts>::default(),
            Box::<garbage::Garbage>::default(),
            Box::<quota::Quotas>::default(),
            Box::<claims::Claims>::default(),
            Box::<stateful_set::StatefulSets>::default(),
            Box::<pods::scheduler::Scheduler>::default(),
            Box::<pods::nodes::Nodes>::default(),
            Box::<pods::Kubelet>::default(),
            Box::<services::Endpoints>::default(),
            Box::<disruption_budget::Budgets>::default(),
        ];
        let slots = controllers
            .into_iter()
            .map(|controller| Slot { controller, due: None, wake: None })
            .collect();
        Builtin {
            slots,
            changes: Changes::default(),
            disturbed: Arc::default(),
            model: Model::new(seed),
        }
    }

    /// Runs whatever is due; returns when the next thing is.
    pub fn step(&mut self, core: &mut Core) -> Option<Timestamp> {
        self.notice(core);
        let now = core.now();
        if self.disturbed.swap(false, Ordering::Relaxed) {
            self.nudge(core);
        }
        for slot in &mut self.slots {
            let due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
            if due(slot.due) || due(slot.wake) {
                slot.due = None;
                slot.wake = slot.controller.sync(core, &mut self.model);
            }
        }
        self.notice(core);
        self.slots.iter().fold(None, |next, slot| earliest(next, earliest(slot.due, slot.wake)))
    }

    /// Makes every controller look again, as after a change of the model's settings.
    pub fn nudge(&mut self, core: &Core) {
        let now = core.now();
        for slot in &mut self.slots {
            slot.due = Some(now);
        }
    }

    /// Schedules the controllers that watch what has changed.
    fn notice(&mut self, core: &Core) {
        let changed = self.changes.plurals(core);
        if changed.as_ref().is_some_and(BTreeSet::is_empty) {
            return;
        }
        let now = core.now();
        for slot in &mut self.slots {
            let watches = slot.controller.watches();
            let concerned = changed.as_ref().is_none_or(|changed| {
                watches.contains(&"*") || watches.iter().any(|one| changed.contains(one))
            });
            if concerned && slot.due.is_none() {
                slot.due = Some(now + self.model.reaction());
            }
        }
    }
}

/// The earlier of two optional times.
pub(crate) fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// `now` plus milliseconds.
pub(crate) fn after(now: Timestamp, millis: i64) -> Timestamp {
    now.saturating_add(SignedDuration::from_millis(millis)).unwrap_or(now)
}
