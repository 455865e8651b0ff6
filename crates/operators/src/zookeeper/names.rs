//! What a ZookeeperCluster's children are called, and where its servers answer.

use phased::ObjectId;

use crate::parts::kinds::{
    budget_kind, config_map_kind, service_account_kind, service_kind, stateful_set_kind,
};
use crate::parts::members;

/// Names of everything that belongs to one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Name of the resource.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

impl Names {
    fn id(&self, kind: phased::KindRef, name: String) -> ObjectId {
        ObjectId::new(kind, self.namespace.clone(), name)
    }

    /// Configuration files.
    pub fn config_map(&self) -> ObjectId {
        self.id(config_map_kind(), format!("{}-configmap", self.name))
    }
    /// The servers' set.
    pub fn stateful_set(&self) -> ObjectId {
        self.id(stateful_set_kind(), self.name.clone())
    }
    /// Where clients connect.
    pub fn client_service(&self) -> ObjectId {
        self.id(service_kind(), format!("{}-client", self.name))
    }
    /// Names of the pods.
    pub fn headless_service(&self) -> ObjectId {
        self.id(service_kind(), format!("{}-headless", self.name))
    }
    /// The servers' own HTTP server.
    pub fn admin_service(&self) -> ObjectId {
        self.id(service_kind(), format!("{}-admin-server", self.name))
    }
    /// How many pods a drain may take.
    pub fn budget(&self) -> ObjectId {
        self.id(budget_kind(), self.name.clone())
    }
    /// The service account of that name.
    pub fn service_account(&self, name: &str) -> ObjectId {
        self.id(service_account_kind(), name.to_owned())
    }
    /// Host name of the headless Service.
    pub fn domain(&self, cluster_domain: &str) -> String {
        format!("{}.{}.svc.{cluster_domain}", self.headless_service().name, self.namespace)
    }
    /// Host name of a pod.
    pub fn pod_host(&self, ordinal: u32, cluster_domain: &str) -> String {
        format!("{}.{}", members::pod_name(&self.name, ordinal), self.domain(cluster_domain))
    }
    /// Node with the size record.
    pub fn record(&self) -> String {
        format!("{RECORD_PARENT}/{}", self.name)
    }
}

/// Node above the size records of all clusters that share an ensemble's tree.
pub const RECORD_PARENT: &str = "/zookeeper-operator";
