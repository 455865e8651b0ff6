//! What a Database's children are called (reference/database.md sections 1 and 4).
//!
//! Must not check the resource's own name; [`super::valid`] does.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
use phased::{KindRef, ObjectId};

/// Port of the server.
pub const PORT: u16 = 5432;
/// What follows the Database's name in that of the application's Secret.
pub const CREDENTIALS_SUFFIX: &str = "-credentials";

/// Kind of the servers' set.
pub fn stateful_set_kind() -> KindRef {
    KindRef::of::<StatefulSet>(true)
}
/// Kind of Services.
pub fn service_kind() -> KindRef {
    KindRef::of::<Service>(true)
}
/// Kind of ConfigMaps.
pub fn config_map_kind() -> KindRef {
    KindRef::of::<ConfigMap>(true)
}
/// Kind of Secrets.
pub fn secret_kind() -> KindRef {
    KindRef::of::<Secret>(true)
}
/// Kind of claims.
pub fn claim_kind() -> KindRef {
    KindRef::of::<PersistentVolumeClaim>(true)
}
/// Kind of pods.
pub fn pod_kind() -> KindRef {
    KindRef::of::<Pod>(true)
}
/// Kind of disruption budgets.
pub fn budget_kind() -> KindRef {
    KindRef::of::<PodDisruptionBudget>(true)
}
/// Kind of storage classes.
pub fn storage_class_kind() -> KindRef {
    KindRef::of::<StorageClass>(false)
}

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
        self.id(claim_kind(), format!("data-{}-{ordinal}", self.name))
    }
    /// Pod of the primary.
    pub fn primary_pod(&self) -> ObjectId {
        self.pod(0)
    }
    /// Pod of an ordinal.
    pub fn pod(&self, ordinal: u32) -> ObjectId {
        self.id(pod_kind(), format!("{}-{ordinal}", self.name))
    }
    /// The ordinal that a pod's name ends with, if it is one of ours.
    pub fn ordinal_of_pod(&self, pod: &str) -> Option<u32> {
        ordinal(pod.strip_prefix(&self.name)?.strip_prefix('-')?)
    }
    /// The ordinal that a claim's name ends with, if it is one of ours.
    pub fn ordinal_of_claim(&self, claim: &str) -> Option<u32> {
        self.ordinal_of_pod(claim.strip_prefix("data-")?)
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
    ordinal(slot.strip_prefix(SLOT_PREFIX)?)
}

/// An ordinal as Kubernetes writes it: no sign, no zero in front.
fn ordinal(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
