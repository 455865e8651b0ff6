//! What a Database's children are called (reference/database.md sections 1 and 4).
//!
//! Must not check the resource's own name; [`super::valid`] does.

use phased::{KindRef, ObjectId};

pub use crate::parts::kinds::{
    budget_kind, claim_kind, config_map_kind, pod_kind, secret_kind, service_kind,
    stateful_set_kind, storage_class_kind,
};
use crate::parts::members;

/// Port of the server.
pub const PORT: u16 = 5432;
/// What follows the Database's name in that of the application's Secret.
pub const CREDENTIALS_SUFFIX: &str = "-credentials";

/// Names of everything that belongs to one Database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Name of the Database.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

impl Names {
    /// Names around the Database `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { name: name.into(), namespace: namespace.into() }
    }

    fn id(&self, kind: KindRef, name: String) -> ObjectId {
        ObjectId::new(kind, self.namespace.clone(), name)
    }

    /// The servers' set.
    pub fn stateful_set(&self) -> ObjectId {
        self.id(stateful_set_kind(), self.name.clone())
    }
    /// Where clients connect.
    pub fn client_service(&self) -> ObjectId {
        self.id(service_kind(), self.name.clone())
    }
    /// Stable addresses of the pods.
    pub fn headless_service(&self) -> ObjectId {
        self.id(service_kind(), format!("{}-headless", self.name))
    }
    /// Where clients read from standbys.
    pub fn read_only_service(&self) -> ObjectId {
        self.id(service_kind(), format!("{}-ro", self.name))
    }
    /// How many pods a drain may take at once.
    pub fn budget(&self) -> ObjectId {
        self.id(budget_kind(), self.name.clone())
    }
    /// Configuration files.
    pub fn config_map(&self) -> ObjectId {
        self.id(config_map_kind(), format!("{}-config", self.name))
    }
    /// Password of the role `postgres`.
    pub fn superuser_secret(&self) -> ObjectId {
        self.id(secret_kind(), format!("{}-superuser", self.name))
    }
    /// Password of the replication role.
    pub fn replication_secret(&self) -> ObjectId {
        self.id(secret_kind(), format!("{}-replication", self.name))
    }
    /// What the application needs.
    pub fn credentials_secret(&self) -> ObjectId {
        self.id(secret_kind(), format!("{}{CREDENTIALS_SUFFIX}", self.name))
    }
    /// Claim of the primary's data.
    pub fn data_claim(&self) -> ObjectId {
        self.claim(0)
    }
    /// Claim of an ordinal.
    pub fn claim(&self, ordinal: u32) -> ObjectId {
        self.id(claim_kind(), members::claim_name(&self.name, ordinal))
    }
    /// Pod of the primary.
    pub fn primary_pod(&self) -> ObjectId {
        self.pod(0)
    }
    /// Pod of an ordinal.
    pub fn pod(&self, ordinal: u32) -> ObjectId {
        self.id(pod_kind(), members::pod_name(&self.name, ordinal))
    }
    /// The ordinal that a pod's name ends with, if it is one of ours.
    pub fn ordinal_of_pod(&self, pod: &str) -> Option<u32> {
        members::ordinal_of_pod(&self.name, pod)
    }
    /// The ordinal that a claim's name ends with, if it is one of ours.
    pub fn ordinal_of_claim(&self, claim: &str) -> Option<u32> {
        members::ordinal_of_claim(&self.name, claim)
    }
    /// Host name of a pod inside the cluster, without the cluster's domain.
    pub fn pod_host(&self, ordinal: u32) -> String {
        let headless = self.headless_service().name;
        format!("{}-{ordinal}.{headless}.{}.svc", self.name, self.namespace)
    }
    /// Host name of the client Service.
    pub fn host(&self, cluster_domain: &str) -> String {
        format!("{}.{}.svc.{cluster_domain}", self.name, self.namespace)
    }
}

/// What begins the name of a standby's slot.
const SLOT_PREFIX: &str = "steadfast_";

/// Slot of the standby with this ordinal.
pub fn slot(ordinal: u32) -> String {
    format!("{SLOT_PREFIX}{ordinal}")
}

/// The ordinal that a slot is for, if it is one of ours.
pub fn ordinal_of_slot(slot: &str) -> Option<u32> {
    members::ordinal(slot.strip_prefix(SLOT_PREFIX)?)
}
