//! Everything that the rendered children of one cluster depend on, and what they have in common.
//!
//! Must not depend on live objects beyond what was copied in here: the same blueprint always gives
//! the same children.

use std::collections::BTreeMap;

use phased::ObjectId;
use phased::child::{Desired, INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL};
use serde_json::{Value, json};

use super::api::{Scripts, Texts};
use super::held::Recorded;
use super::names::Names;
use super::valid::Valid;
use super::{KIND, config};

/// What children are rendered from.
#[derive(Clone, Debug, PartialEq)]
pub struct Blueprint {
    /// Names of the children.
    pub names: Names,
    /// uid of the resource.
    pub uid: String,
    /// The checked spec, with recorded values where a change of them is refused.
    pub valid: Valid,
    /// DNS domain of the cluster.
    pub cluster_domain: String,
    /// Who brings the scripts.
    pub scripts: Scripts,
    /// What the live objects record.
    pub recorded: Recorded,
    /// Servers in the StatefulSet as it is written now; [`Valid::replicas`] are wanted.
    pub count: u32,
    /// The lowest ordinal that the set may make anew from a changed template.
    pub partition: u32,
}

impl Blueprint {
    /// Digest of the configuration that the servers were first run with.
    pub fn baseline(&self) -> String {
        self.recorded.baseline.clone().unwrap_or_else(|| config::digest(self))
    }

    /// The digest that the template carries: none while it is the baseline's, so that taking a
    /// cluster over changes no template.
    pub fn template_digest(&self) -> Option<String> {
        let now = config::digest(self);
        (now != self.baseline()).then_some(now)
    }

    /// A child that goes with the resource. Its labels are those given and ours, which win.
    pub(super) fn owned(&self, id: ObjectId, labels: Texts, mut body: Value) -> Desired {
        let ours = [(MANAGED_BY_LABEL, MANAGED_BY), (INSTANCE_LABEL, self.names.name.as_str())];
        let mut all = labels;
        all.extend(ours.map(|(key, value)| (key.to_owned(), value.to_owned())));
        body["apiVersion"] = json!(id.kind.api_version());
        body["kind"] = json!(id.kind.kind);
        body["metadata"]["name"] = json!(id.name);
        body["metadata"]["namespace"] = json!(id.namespace);
        body["metadata"]["labels"] = json!(all);
        body["metadata"]["ownerReferences"] = json!([{
            "apiVersion": KIND.api_version(),
            "kind": KIND.kind,
            "name": self.names.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }]);
        Desired { id, intent: body }
    }

    /// Labels by which pods are selected. They can never change.
    pub(super) fn selector(&self) -> Texts {
        BTreeMap::from([("app".to_owned(), self.names.name.clone())])
    }
}
