//! What a controller decided: plain data, comparable, printable, free of secrets.
//!
//! Must not refer to the snapshot it was made from.

use serde_json::Value;

use crate::fact::Question;
use crate::ladder::Verdict;
use crate::object::ObjectId;
use crate::reason::Reason;
use crate::step::Step;
use crate::wake::Wake;

/// The result of one look at the world.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Questions whose answers this plan is missing. While there are any, the runner answers them
    /// and plans again, at most [`Plan::ROUNDS`] times a pass.
    pub asks: Vec<Question>,
    /// Writes, in order.
    pub steps: Vec<Step>,
    /// The status to write; `None` when the stored one is already true.
    pub status: Option<StatusWrite>,
    /// The move between phases that `status` makes, if any.
    pub transition: Option<Transition>,
    /// Events to publish once the status is written.
    pub events: Vec<EventNote>,
    /// A reason for everything that is not done, most important first.
    pub notes: Vec<Note>,
    /// When to look again.
    pub wake: Wake,
    /// Where the resource stands on the ladder; `None` off it (deletion, an unreadable resource).
    pub stands: Option<Stands>,
}

impl Plan {
    /// How often a pass may answer questions before it must act on what it has.
    pub const ROUNDS: usize = 3;

    /// A plan that does nothing and waits for a change.
    pub fn idle() -> Self {
        Self {
            asks: Vec::new(),
            steps: Vec::new(),
            status: None,
            transition: None,
            events: Vec::new(),
            notes: Vec::new(),
            wake: Wake::OnChange,
            stands: None,
        }
    }
}

/// Where a resource stands: what `explain` and forecasts read, with the deadline that a status does
/// not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stands {
    /// Phase of the first rung that is not done, or of the highest.
    pub phase: &'static str,
    /// How that rung stands.
    pub verdict: Verdict,
}

/// The one status write of a pass: server-side apply to the status subresource, forced, with uid
/// and resourceVersion, so that a stale view cannot overwrite a newer truth and another
/// controller's condition survives (fault catalogue PG-27, PG-28).
#[derive(Clone, Debug, PartialEq)]
pub struct StatusWrite {
    /// The status object, without conditions of other owners.
    pub status: Value,
    /// uid of the resource.
    pub uid: String,
    /// resourceVersion that the status was computed from.
    pub resource_version: String,
}

/// A move between phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Phase before; empty on the first status.
    pub from: String,
    /// Phase after.
    pub to: String,
    /// Why.
    pub reason: &'static str,
}

/// An Event about the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// Whether it is a `Warning`.
    pub warning: bool,
    /// Reason, CamelCase.
    pub reason: &'static str,
    /// What the operator was doing (`events.k8s.io` calls it action).
    pub action: &'static str,
    /// Sentence for people. Never a secret.
    pub message: String,
}

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The object concerned; `None` for the resource itself.
    pub about: Option<ObjectId>,
    /// The reason.
    pub reason: &'static Reason,
    /// The details.
    pub message: String,
}
