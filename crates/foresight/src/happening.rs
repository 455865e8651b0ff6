//! What happens in a forecast, in order.

use phased::plan::{EventNote, Transition};
use phased::{Live, ObjectId};

use crate::workload::Move;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// The controller wrote a child.
    Wrote(Box<Wrote>),
    /// The controller acted outside Kubernetes.
    Acted {
        /// The action's name.
        name: &'static str,
        /// The gate that was open.
        gate: &'static str,
        /// Why.
        why: String,
    },
    /// A pod or a claim came, went or got ready.
    Moved(Move),
    /// The phase changed; with the sentence that came with it.
    Phase(Transition, String),
    /// An Event was published.
    Event(EventNote),
    /// The server would refuse a write.
    Refused {
        /// What was to be written.
        id: ObjectId,
        /// The server's words.
        message: String,
    },
}

/// A write of the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrote {
    /// The child.
    pub id: ObjectId,
    /// Before; `None` when it was not there.
    pub before: Option<Live>,
    /// After; `None` when it was deleted.
    pub after: Option<Live>,
    /// Keys with values that the operator makes up.
    pub generated: Vec<String>,
    /// What was declared.
    pub intent: Option<serde_json::Value>,
    /// Why, in the plan's words.
    pub why: String,
}
