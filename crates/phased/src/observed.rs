//! One snapshot of the world: all that a plan may look at.
//!
//! Must not hold anything that changes while a plan is made, nor any way to ask for more.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::controller::Settings;
use crate::fact::{Facts, Trouble};
use crate::object::{Live, ObjectId};

/// What was seen at the beginning of a pass, and what was answered during it.
#[derive(Clone, Debug)]
pub struct Observed<R> {
    /// The custom resource, parsed.
    pub resource: R,
    /// The custom resource as the server stores it: metadata, and fields that `R` does not know.
    pub root: Live,
    /// Objects that the controller wants to see and that exist.
    pub objects: BTreeMap<ObjectId, Live>,
    /// Answers to questions asked in earlier rounds of the same pass.
    pub facts: Facts,
    /// Steps of this pass that the server refused, so that the status can say so.
    pub troubles: Vec<StepTrouble>,
    /// The time of the snapshot.
    pub now: Timestamp,
    /// What the operator was started with.
    pub settings: Settings,
}

/// A write that did not succeed in this pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTrouble {
    /// The object that the step was about; for an external action, the resource itself.
    pub id: ObjectId,
    /// The verb, as RBAC spells it (`patch`, `create`, `delete`), or the action's name.
    pub verb: String,
    /// What went wrong.
    pub trouble: Trouble,
}

impl<R> Observed<R> {
    /// The object of that name, if it exists.
    pub fn object(&self, id: &ObjectId) -> Option<&Live> {
        self.objects.get(id)
    }

    /// Objects of one kind, in the order of their names.
    pub fn of_kind(&self, kind: crate::KindRef) -> impl Iterator<Item = (&ObjectId, &Live)> {
        self.objects.iter().filter(move |(id, _)| id.kind == kind)
    }

    /// The trouble that a step about `id` met in this pass.
    pub fn trouble_of(&self, id: &ObjectId) -> Option<&StepTrouble> {
        self.troubles.iter().find(|t| &t.id == id)
    }
}
