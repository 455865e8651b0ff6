//! Everything that the rendered children of one Database depend on, and what they have in common.
//!
//! Must not depend on live objects beyond what was copied in here: the same blueprint always gives
//! the same children.

use std::collections::BTreeMap;

use phased::ObjectId;
use phased::child::{Desired, Owner};
use serde_json::{Value, json};

use super::labels;
use super::names::Names;
use super::valid::Valid;

/// What children are rendered from.
#[derive(Clone, Debug, PartialEq)]
pub struct Blueprint {
    /// Names of the children.
    pub names: Names,
    /// uid of the Database.
    pub uid: String,
    /// The checked spec, with recorded values where a change of them is refused.
    pub valid: Valid,
    /// DNS domain of the cluster.
    pub cluster_domain: String,
    /// What the server calls itself: the uid of the Database that first made it. It outlives an
    /// orphaning delete, so that a takeover restarts no pod.
    pub identity: String,
    /// The recorded system identifier, which forbids another bootstrap.
    pub identifier: Option<String>,
    /// Whether a person gave the recorded data up for lost.
    pub loss_accepted: bool,
    /// uid that the claim template carries; immutable once the StatefulSet exists.
    pub template_uid: String,
    /// Servers in the StatefulSet as it is written now; [`Valid::replicas`] are wanted.
    pub count: u32,
    /// Whether there are standbys, wanted or still there, so that Services must tell roles apart.
    pub several: bool,
    /// Pods whose standbys must be seeded anew: uid by ordinal.
    pub reseed: BTreeMap<u32, String>,
    /// The size that volumes are to grow to; [`Valid::size`] is that of the claim template.
    pub growth: Option<String>,
}

impl Blueprint {
    /// The owner as the kernel compares it.
    pub fn owner(&self) -> Owner {
        owner(&self.names, &self.uid)
    }

    /// Whether an empty volume may be initialised (reference/database.md section 4).
    pub fn may_bootstrap(&self) -> bool {
        self.identifier.is_none() || self.loss_accepted
    }

    /// The size that every volume should have.
    pub fn size(&self) -> &str {
        self.growth.as_ref().unwrap_or(&self.valid.size)
    }

    /// Ordinals of the standbys that are wanted.
    pub fn standbys(&self) -> std::ops::Range<u32> {
        1..self.valid.replicas
    }

    /// A child that goes with the Database.
    pub(super) fn owned(&self, id: ObjectId, body: Value) -> Desired {
        let mut desired = self.kept(id, body);
        desired.intent["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "database.example.com/v1",
            "kind": "Database",
            "name": self.names.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }]);
        desired
    }

    /// A child that outlives the Database unless the deletion policy says otherwise.
    pub(super) fn kept(&self, id: ObjectId, body: Value) -> Desired {
        let mut intent = body;
        intent["apiVersion"] = json!(id.kind.api_version());
        intent["kind"] = json!(id.kind.kind);
        intent["metadata"]["name"] = json!(id.name);
        intent["metadata"]["namespace"] = json!(id.namespace);
        intent["metadata"]["labels"] = json!(labels::child(&self.names.name));
        Desired { id, intent }
    }
}

/// The owner as the kernel compares it.
pub fn owner(names: &Names, uid: &str) -> Owner {
    Owner { name: names.name.clone(), uid: uid.to_owned(), manager: super::MANAGER.to_owned() }
}
