//! The `ZookeeperCluster` resource as users write it.
//!
//! The fields, their places and their spellings are those of the replaced operator, so that stored
//! resources stay valid with all of its defaults filled in; `scripts` and `progressDeadlineSeconds`
//! are added. Must not hold decisions: what the API server can check stands here as schema and CEL,
//! and is checked again in [`super::valid`].

#![allow(unreachable_pub, reason = "the derive of a schema copies each struct into a function")]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ContainerPort;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use super::options::{Config, PodPolicy, Probe, Probes};
pub use super::report::{Phase, ZookeeperClusterStatus};
use super::schema;

/// Texts by name.
pub type Texts = BTreeMap<String, String>;
/// A part of Kubernetes' own API, kept as it was written.
pub type Part = Map<String, Value>;

/// The resource as it is read: nothing of it is required, not even the spec.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// What is asked for.
    #[serde(default)]
    pub spec: ZookeeperClusterSpec,
}

/// What a ZooKeeper ensemble should be.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "zookeeper.pravega.io",
    version = "v1beta1",
    kind = "ZookeeperCluster",
    plural = "zookeeperclusters",
    singular = "zookeepercluster",
    shortname = "zk",
    namespaced,
    status = "ZookeeperClusterStatus",
    derive = "PartialEq",
    doc = "An ensemble of ZooKeeper servers.",
    crates(kube = "::kube_derive", kube_core = "::kube_core"),
    attr = "x_kube(crates(kube_core = \"::kube_core\"))",
    printcolumn(
        name = "Replicas",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "The number of ZooKeeper servers wanted"
    ),
    printcolumn(
        name = "Ready Replicas",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "The number of ZooKeeper servers that are Ready"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".status.currentVersion",
        description = "The version that runs"
    ),
    printcolumn(
        name = "Desired Version",
        type_ = "string",
        json_path = ".spec.image.tag",
        description = "The version wanted"
    ),
    printcolumn(
        name = "Internal Endpoint",
        type_ = "string",
        json_path = ".status.internalClientEndpoint",
        description = "Address for clients inside the cluster"
    ),
    printcolumn(
        name = "External Endpoint",
        type_ = "string",
        json_path = ".status.externalClientEndpoint",
        description = "Address for clients outside the cluster"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = (
        "size(self.metadata.name) <= 50",
        "metadata.name: at most 50 characters, since the Service <name>-admin-server may have 63; choose a shorter name"
    ),
    validation = (
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "metadata.name: Services take this name, so it must begin with a letter and hold only a-z, 0-9 and '-', no dots; choose another name"
    )
)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "(has(self.storageType) && self.storageType.lowerAscii() == 'ephemeral') == (has(oldSelf.storageType) && oldSelf.storageType.lowerAscii() == 'ephemeral')",
        "storageType: cannot change between ephemeral and persistent; restore the old value, or create a new ZookeeperCluster"
    ),
    validation = (
        "(has(self.ports) && self.ports.exists(p, has(p.name) && p.name == 'client') ? self.ports.filter(p, has(p.name) && p.name == 'client')[0].containerPort : 2181) == (has(oldSelf.ports) && oldSelf.ports.exists(p, has(p.name) && p.name == 'client') ? oldSelf.ports.filter(p, has(p.name) && p.name == 'client')[0].containerPort : 2181)",
        "ports: the port 'client' cannot change, since the members' registered addresses hold it; restore the old value"
    ),
    validation = (
        "(has(self.ports) && self.ports.exists(p, has(p.name) && p.name == 'quorum') ? self.ports.filter(p, has(p.name) && p.name == 'quorum')[0].containerPort : 2888) == (has(oldSelf.ports) && oldSelf.ports.exists(p, has(p.name) && p.name == 'quorum') ? oldSelf.ports.filter(p, has(p.name) && p.name == 'quorum')[0].containerPort : 2888)",
        "ports: the port 'quorum' cannot change, since the members' registered addresses hold it; restore the old value"
    ),
    validation = (
        "(has(self.ports) && self.ports.exists(p, has(p.name) && p.name == 'leader-election') ? self.ports.filter(p, has(p.name) && p.name == 'leader-election')[0].containerPort : 3888) == (has(oldSelf.ports) && oldSelf.ports.exists(p, has(p.name) && p.name == 'leader-election') ? oldSelf.ports.filter(p, has(p.name) && p.name == 'leader-election')[0].containerPort : 3888)",
        "ports: the port 'leader-election' cannot change, since the members' registered addresses hold it; restore the old value"
    )
)]
pub struct ZookeeperClusterSpec {
    /// Image of the servers.
    #[serde(default)]
    pub image: Image,
    /// Labels of pods and of every other object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub labels: Texts,
    /// Number of servers. Odd numbers are the useful ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 255), extend("default" = DEFAULT_REPLICAS))]
    pub replicas: Option<i32>,
    /// Ports of the servers' container. Those named `client`, `quorum`, `leader-election`, `metrics`
    /// and `admin-server` are the servers' own; what is absent is added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::ports")]
    pub ports: Vec<ContainerPort>,
    /// What the pods should carry.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pod: PodPolicy,
    /// The Service of the servers' own HTTP server.
    #[serde(default, skip_serializing_if = "is_default")]
    pub admin_server_service: AdminServerService,
    /// The Service for clients.
    #[serde(default, skip_serializing_if = "is_default")]
    pub client_service: ServiceOptions,
    /// The Service that gives pods their names.
    #[serde(default, skip_serializing_if = "is_default")]
    pub headless_service: ServiceOptions,
    /// Asks for every pod to be made anew, once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub trigger_rolling_restart: bool,
    /// `ephemeral`, or anything else for volumes that outlive pods. Cannot change.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub storage_type: String,
    /// Volumes that outlive pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
    /// Volumes that go with their pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<Ephemeral>,
    /// Settings of `zoo.cfg`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub config: Config,
    /// Domain under which external-dns publishes the headless Service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub domain_name: String,
    /// DNS domain of the Kubernetes cluster, when it is not the operator's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub kubernetes_cluster_domain: String,
    /// Containers before that of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::named_objects")]
    pub containers: Vec<Part>,
    /// Init containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::named_objects")]
    pub init_containers: Vec<Part>,
    /// Volumes of the pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::named_objects")]
    pub volumes: Vec<Part>,
    /// Mounts of the server's container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::mounts")]
    pub volume_mounts: Vec<Part>,
    /// When a server counts as ready and as alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<Probes>,
    /// How many pods a drain may take at once; below 1 means 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -2_147_483_647, max = 2_147_483_647))]
    pub max_unavailable_replicas: Option<i32>,
    /// How long an upgrade or rollout may go without progress before it counts as failed, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 86_400))]
    pub progress_deadline_seconds: Option<i32>,
}

/// Image of the servers: `repository:tag`.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// Where the image lies.
    #[schemars(length(max = 255), regex(pattern = r"^\S*$"))]
    pub repository: String,
    /// Its tag. A change of it is an upgrade.
    #[schemars(length(max = 128), regex(pattern = r"^[A-Za-z0-9_.-]*$"))]
    pub tag: String,
    /// When the image is pulled.
    pub pull_policy: PullPolicy,
    /// Who brings the scripts that start, probe and stop a server. Absent: by the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Scripts>,
}

impl Default for Image {
    fn default() -> Self {
        Self {
            repository: super::family::DEFAULT_REPOSITORY.to_owned(),
            tag: super::family::DEFAULT_TAG.to_owned(),
            pull_policy: PullPolicy::Always,
            scripts: None,
        }
    }
}

/// When an image is pulled.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullPolicy {
    /// At every start.
    Always,
    /// Never.
    Never,
    /// When the node does not have it.
    IfNotPresent,
}

/// Who brings the scripts.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scripts {
    /// The image, as those of the replaced operator do.
    Image,
    /// The operator.
    Operator,
}

/// Options of a Service.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ServiceOptions {
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub annotations: Texts,
}

/// Options of the admin server's Service.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AdminServerService {
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub annotations: Texts,
    /// Whether it is a `LoadBalancer`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub external: bool,
}

/// Volumes that outlive pods.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.spec) || !has(oldSelf.spec) || !has(self.spec.resources) || !has(oldSelf.spec.resources) || !has(self.spec.resources.requests) || !has(oldSelf.spec.resources.requests) || !('storage' in self.spec.resources.requests) || !('storage' in oldSelf.spec.resources.requests) || !isQuantity(string(self.spec.resources.requests['storage'])) || !isQuantity(string(oldSelf.spec.resources.requests['storage'])) || quantity(string(self.spec.resources.requests['storage'])).compareTo(quantity(string(oldSelf.spec.resources.requests['storage']))) >= 0",
    "spec.resources.requests.storage: a volume cannot shrink; restore the old size"
))]
pub struct Persistence {
    /// What becomes of volumes on deletion and when the ensemble shrinks.
    #[serde(default)]
    pub reclaim_policy: ReclaimPolicy,
    /// Spec of the claims. Access modes are always `ReadWriteOnce`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "schema::claim")]
    pub spec: Part,
    /// Annotations of the claims.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub annotations: Texts,
}

/// What becomes of volumes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// They are kept.
    #[default]
    Retain,
    /// They are deleted.
    Delete,
}

/// Volumes that go with their pods.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Ephemeral {
    /// An `emptyDir`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "schema::object")]
    pub emptydirvolumesource: Part,
}

/// Servers when no number is named.
pub const DEFAULT_REPLICAS: i32 = 3;

/// Whether a part is as good as absent, so that no default is stored for it.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
