//! What may be set of the servers and their pods, as users write it.
//!
//! Must not fill in defaults of the servers; [`super::valid`] does.

#![allow(unreachable_pub, reason = "the derive of a schema copies each struct into a function")]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, EnvVar, LocalObjectReference};
use kube_derive::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::api::{Part, Texts, is_default};
use super::schema;

/// Settings of `zoo.cfg`; what is absent gets the operator's default.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "(has(self.minSessionTimeout) ? self.minSessionTimeout : 2 * (has(self.tickTime) ? self.tickTime : 2000)) <= (has(self.maxSessionTimeout) ? self.maxSessionTimeout : 20 * (has(self.tickTime) ? self.tickTime : 2000))",
    "minSessionTimeout must not be above maxSessionTimeout; absent ones are 2 and 20 times tickTime"
))]
pub struct Config {
    /// Ticks that a follower may take to connect and sync; 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub init_limit: Option<i32>,
    /// Length of a tick in milliseconds; 2000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub tick_time: Option<i32>,
    /// Ticks that a follower may lag; 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub sync_limit: Option<i32>,
    /// Requests that may be queued; 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub global_outstanding_limit: Option<i32>,
    /// Size of a block of the transaction log in KiB; 65536.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub pre_alloc_size: Option<i32>,
    /// Transactions between snapshots; 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub snap_count: Option<i32>,
    /// Committed transactions kept in memory; 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub commit_log_count: Option<i32>,
    /// Size of the transaction log between snapshots in KiB; 4194304.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub snap_size_limit_in_kb: Option<i32>,
    /// Connections that a server takes; 0 means without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub max_cnxns: Option<i32>,
    /// Connections that a server takes from one address; 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub max_client_cnxns: Option<i32>,
    /// Shortest session time-out in milliseconds; twice the tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub min_session_timeout: Option<i32>,
    /// Longest session time-out in milliseconds; twenty times the tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub max_session_timeout: Option<i32>,
    /// Snapshots that are kept; 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub auto_purge_snap_retain_count: Option<i32>,
    /// Hours between purges of old snapshots; 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub auto_purge_purge_interval: Option<i32>,
    /// Whether a server listens for others on all addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "quorumListenOnAllIPs")]
    pub quorum_listen_on_all_ips: Option<bool>,
    /// Further settings; none of them can replace one of the operator's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::settings")]
    pub additional_config: Texts,
}

/// What the pods should carry.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PodPolicy {
    /// Labels; they go before those of the cluster.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub labels: Texts,
    /// Nodes that may carry the pods, by label.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub node_selector: Texts,
    /// Affinity; if it is set at all, there is no default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub affinity: Option<Affinity>,
    /// How pods spread over zones and nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::objects")]
    pub topology_spread_constraints: Vec<Part>,
    /// Requests and limits of the server's container.
    #[serde(skip_serializing_if = "Part::is_empty")]
    #[schemars(schema_with = "schema::resources")]
    pub resources: Part,
    /// Taints that the pods tolerate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::objects")]
    pub tolerations: Vec<Part>,
    /// Environment of the server's container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::named_objects")]
    pub env: Vec<EnvVar>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub annotations: Texts,
    /// Security context of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object")]
    pub security_context: Option<Part>,
    /// Seconds that a pod has to stop; 0 and absent mean 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_991i64))]
    pub termination_grace_period_seconds: Option<i64>,
    /// Service account. Another one than `default` is made, unless somebody else made it.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub service_account_name: String,
    /// Secrets for pulling images, put on that service account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::secret_references")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

/// When a server counts as ready and as alive.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Probes {
    /// Readiness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<Probe>,
    /// Liveness. Its `successThreshold` has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness_probe: Option<Probe>,
}

/// A probe's numbers. Within a block that is written, what is absent is Kubernetes' default.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Probe {
    /// Seconds before the first look.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub initial_delay_seconds: i32,
    /// Seconds between looks.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub period_seconds: i32,
    /// Failures in a row that count.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub failure_threshold: i32,
    /// Successes in a row that count.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub success_threshold: i32,
    /// Seconds that a look may take.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub timeout_seconds: i32,
}
