//! The status of a `ZookeeperCluster` as the API stores it.
//!
//! The replaced operator's fields keep their names and meaning. Must not decide what to say;
//! [`super::status`] does.

#![allow(unreachable_pub, reason = "the derive of a schema copies each struct into a function")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::KubeSchema;
use phased::deadline::Progress;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use crate::parts::memory::lenient;
use crate::parts::reverts::Reverts;

/// The phases.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The resource is accepted, or waits to be.
    Pending,
    /// Configuration, Services and the StatefulSet are made.
    Provisioning,
    /// The pods roll out.
    Deploying,
    /// The servers form one ensemble.
    Forming,
    /// Everything holds.
    Ready,
    /// An upgrade or a rollout made no progress.
    Failed,
}

impl Phase {
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Provisioning => "Provisioning",
            Self::Deploying => "Deploying",
            Self::Forming => "Forming",
            Self::Ready => "Ready",
            Self::Failed => "Failed",
        }
    }

    /// The phase of that name; `Failed` for any other.
    pub fn named(name: &str) -> Self {
        [Self::Pending, Self::Provisioning, Self::Deploying, Self::Forming, Self::Ready]
            .into_iter()
            .find(|phase| phase.as_str() == name)
            .unwrap_or(Self::Failed)
    }
}

/// What the operator last saw and did.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
pub struct ZookeeperClusterStatus {
    /// Pods by their readiness.
    #[serde(default, skip_serializing_if = "Members::is_empty")]
    pub members: Members,
    /// Pods that the StatefulSet counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Pods that are Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Address and port of the client Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_client_endpoint: Option<String>,
    /// Address and port for clients outside the cluster; `N/A` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_client_endpoint: Option<String>,
    /// Whether the size record was ever confirmed in ZooKeeper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_root_created: Option<bool>,
    /// Tag of the image that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_version: Option<String>,
    /// Tag of the image that an upgrade under way leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_version: Option<String>,
    /// `PodsReady`, `Upgrading`, `Error`, `Ready`, `Progressing`, `Degraded`, and those of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = kube_core::ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<ClusterCondition>,
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The first rung that is not done.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Since when this phase is shown.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub phase_since: Option<Time>,
    /// When an upgrade or rollout last made progress.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What the servers say of themselves.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub quorum: Option<Quorum>,
    /// Who brings the scripts: `Image` or `Operator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<String>,
    /// Edits by other managers that were taken back.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub reverts: Option<Reverts>,
}

/// Pods by their readiness.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default)]
pub struct Members {
    /// Pods that are Ready, by ordinal.
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::pod_names")]
    pub ready: Vec<String>,
    /// The other pods, by ordinal.
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::pod_names")]
    pub unready: Vec<String>,
}

impl Members {
    /// Whether there are no pods.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.unready.is_empty()
    }
}

fn names<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default())
}

/// A condition, in a form that takes in both the standard's and the replaced operator's.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCondition {
    /// Type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason; in `Upgrading` it holds a blank.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Message; in `Upgrading` the number of updated pods.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When status, reason or message last changed; of the replaced operator's conditions only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_update_time: String,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_transition_time: String,
    /// Generation of the spec that it speaks of; of the standard conditions only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What the servers say of themselves.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Quorum {
    /// `replicated`, `standalone`, or `none` when no server serves.
    pub mode: String,
    /// Pod of the leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// Pods of followers, by ordinal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followers: Vec<String>,
    /// Pods of observers, by ordinal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observers: Vec<String>,
    /// Voters that the ensemble lists.
    #[schemars(with = "i32", range(min = 0))]
    pub voters: u32,
}
