//! Built-in kinds that children are of.
//!
//! Must not name objects; each controller's `names` does.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
use phased::KindRef;

/// Kind of the servers' set.
pub fn stateful_set_kind() -> KindRef {
    KindRef::of::<StatefulSet>(true)
}
/// Kind of Services.
pub fn service_kind() -> KindRef {
    KindRef::of::<Service>(true)
}
/// Kind of service accounts.
pub(crate) fn service_account_kind() -> KindRef {
    KindRef::of::<ServiceAccount>(true)
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
