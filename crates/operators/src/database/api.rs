//! The `Database` resource as users write it (reference/database.md section 1).
//!
//! Must not hold decisions: the rules that the API server can check stand here as schema and CEL,
//! and are checked again in [`super::valid`] for clusters where admission was laxer.

#![allow(unreachable_pub, reason = "the derive of a schema copies each struct into a function")]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, LocalObjectReference, PodSecurityContext, Toleration, TopologySpreadConstraint,
};
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amounts;
pub use super::report::{DatabaseStatus, Phase, Reverts};
use super::schema;

/// A PostgreSQL database: one server with one database and the role that owns it.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "database.example.com",
    version = "v1",
    kind = "Database",
    plural = "databases",
    singular = "database",
    namespaced,
    status = "DatabaseStatus",
    derive = "PartialEq",
    doc = "A PostgreSQL server with one database and the role that owns it.",
    crates(kube = "::kube_derive", kube_core = "::kube_core"),
    attr = "x_kube(crates(kube_core = \"::kube_core\"))",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(name = "Replicas", type_ = "string", json_path = ".status.replicaSummary"),
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image", priority = 1),
    printcolumn(name = "Primary", type_ = "string", json_path = ".status.primary", priority = 1),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        priority = 1
    ),
    validation = (
        "size(self.metadata.name) <= 52",
        "metadata.name: at most 52 characters, since names of pods and revisions are longer; choose a shorter name"
    ),
    validation = (
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "metadata.name: a Service takes this name, so it must begin with a letter and hold only a-z, 0-9 and '-', no dots; choose another name"
    ),
    validation = (
        "(has(oldSelf.spec.storage.storageClass) == has(self.spec.storage.storageClass) && (!has(self.spec.storage.storageClass) || oldSelf.spec.storage.storageClass == self.spec.storage.storageClass)) || !has(oldSelf.status) || !has(oldSelf.status.volume)",
        "spec.storage.storageClass: cannot change once a volume exists; restore the old value, or create a new Database and move the data with pg_dump"
    ),
    validation = (
        "!isQuantity(self.spec.storage.size) || !isQuantity(oldSelf.spec.storage.size) || quantity(self.spec.storage.size).compareTo(quantity(oldSelf.spec.storage.size)) >= 0 || !has(oldSelf.status) || !has(oldSelf.status.volume)",
        "spec.storage.size: a volume cannot shrink; restore the old size, or create a new Database and move the data with pg_dump"
    )
)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    /// Container image that follows the contract of the official PostgreSQL images 14 to 18.
    #[serde(default = "default_image")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = (
        "!self.matches('\\\\s')",
        "an image name holds no blanks; remove them"
    ))]
    pub image: String,

    /// Number of servers: one primary, and standbys that follow it.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 1, max = 16))]
    pub replicas: i32,

    /// Name of the database, at most 63 bytes. Cannot change.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(
        validation = (
            "size(bytes(self)) <= 63",
            "PostgreSQL keeps at most 63 bytes of a name and cuts the rest; choose a shorter one"
        ),
        validation = (
            "self.matches('^[\\\\p{L}_][\\\\p{L}\\\\p{N}_-]*$')",
            "a name begins with a letter or '_' and holds only letters, digits, '_' and '-'; choose another one"
        ),
        validation = (
            "!self.startsWith('pg_') && !(self in ['postgres', 'template0', 'template1'])",
            "this name is PostgreSQL's own; choose another one"
        ),
        validation = (
            "self == oldSelf",
            "cannot change; restore the old value, or create a new Database and move the data with pg_dump"
        )
    )]
    pub database_name: String,

    /// Name of the role that owns the database, at most 63 bytes. Cannot change.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(
        validation = (
            "size(bytes(self)) <= 63",
            "PostgreSQL keeps at most 63 bytes of a name and cuts the rest; choose a shorter one"
        ),
        validation = (
            "self.matches('^[\\\\p{L}_][\\\\p{L}\\\\p{N}_-]*$')",
            "a name begins with a letter or '_' and holds only letters, digits, '_' and '-'; choose another one"
        ),
        validation = (
            "!self.startsWith('pg_') && !(self in ['postgres', 'public', 'none', 'steadfast_replication'])",
            "this name is PostgreSQL's or the operator's own; choose another one"
        ),
        validation = (
            "self == oldSelf",
            "cannot change; restore the old value, or create a new Database and move the data with pg_dump"
        )
    )]
    pub username: String,

    /// The volume of each server.
    pub storage: Storage,

    /// Settings of `postgresql.conf`, as text: `max_connections: "200"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::parameters")]
    #[x_kube(validation = (
        "!['listen_addresses', 'port', 'unix_socket_directories', 'data_directory', 'config_file', 'hba_file', 'ident_file', 'external_pid_file', 'primary_conninfo', 'primary_slot_name', 'hot_standby', 'restore_command', 'recovery_end_command', 'archive_cleanup_command', 'ssl_passphrase_command', 'archive_mode', 'archive_command', 'archive_library', 'shared_preload_libraries', 'session_preload_libraries', 'local_preload_libraries', 'dynamic_library_path', 'jit_provider', 'default_transaction_read_only', 'unix_socket_group', 'unix_socket_permissions', 'password_encryption', 'cluster_name'].exists(name, name in self)",
        "holds a setting that the operator owns or that would break it; remove it (the list with reasons is in the documentation of Database)"
    ))]
    pub parameters: BTreeMap<String, String>,

    /// Compute resources of the server's container.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,

    /// What else the pods should carry.
    #[serde(default, skip_serializing_if = "PodOptions::is_empty")]
    pub pod_template: PodOptions,

    /// What must answer before the server is first started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = kube_core::ListMerge::Map(vec!["name".into()]))]
    pub external_dependencies: Vec<ExternalDependency>,

    /// What becomes of volumes and of the superuser's and replication Secrets on deletion.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,

    /// How long a rollout may go without progress, in seconds, before it counts as failed.
    #[serde(default = "default_progress_deadline_seconds")]
    #[schemars(range(min = 10, max = 86_400))]
    pub progress_deadline_seconds: i32,
}

impl Database {
    /// Whether the spec asks for volumes to go with what used them.
    pub fn may_lose_volumes(&self) -> bool {
        self.spec.deletion_policy == DeletionPolicy::Delete
    }
}

/// The volume of a server.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Size, such as `10Gi`.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(
        validation = (
            "isQuantity(self)",
            "not a quantity; write a number with a unit, such as 10Gi"
        ),
        validation = (
            "!isQuantity(self) || quantity(self).compareTo(quantity('100Mi')) >= 0",
            "a volume needs at least 100Mi; write a number with a unit, such as 10Gi"
        )
    )]
    pub size: String,

    /// Storage class; the cluster's default when absent. Cannot change once a volume exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = (
        "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
        "not the name of a storage class: only a-z, 0-9, '-' and '.'; write an existing class"
    ))]
    pub storage_class: Option<String>,
}

/// Requests and limits of the server's container.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// The most that the container may use.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    #[schemars(schema_with = "schema::amounts")]
    pub limits: Amounts,
    /// What is set aside for it.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    #[schemars(schema_with = "schema::amounts")]
    pub requests: Amounts,
}

impl Resources {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.requests.is_empty()
    }
}

/// What else the pods should carry.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PodOptions {
    /// Labels beside the operator's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::short_texts")]
    pub labels: BTreeMap<String, String>,
    /// Annotations beside the operator's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub annotations: BTreeMap<String, String>,
    /// Nodes that may carry the pods, by label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::short_texts")]
    pub node_selector: BTreeMap<String, String>,
    /// Affinity to nodes and pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub affinity: Option<Affinity>,
    /// Taints that the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::objects")]
    pub tolerations: Vec<Toleration>,
    /// How pods spread over zones and nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::objects")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// Priority class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub priority_class_name: Option<String>,
    /// Secrets for pulling the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::secret_references")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Laid over the pods' security context (user, groups), for images with another user id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub security_context: Option<PodSecurityContext>,
    /// Service account; no token is mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
}

impl PodOptions {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

/// Something outside that must answer before the server is first started.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.address) != has(self.url)",
    "a dependency has either an address (host:port) or a url; keep one of them"
))]
pub struct ExternalDependency {
    /// A name for messages, unique in the list.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// `host:port` where a TCP connection must be accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 260))]
    pub address: Option<String>,
    /// `http://` or `https://` URL whose GET must answer 2xx.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub url: Option<String>,
    /// Bound on each try, in seconds.
    #[serde(default = "default_dependency_timeout_seconds")]
    #[schemars(range(min = 1, max = 30))]
    pub timeout_seconds: i32,
}

/// What becomes of the data on deletion.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeletionPolicy {
    /// Volumes and the superuser's and replication Secrets are kept.
    #[default]
    Retain,
    /// They are deleted.
    Delete,
}

fn default_image() -> String {
    "postgres:17".to_owned()
}

fn default_replicas() -> i32 {
    1
}

fn default_progress_deadline_seconds() -> i32 {
    600
}

fn default_dependency_timeout_seconds() -> i32 {
    5
}
