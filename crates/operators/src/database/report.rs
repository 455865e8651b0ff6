//! The status of a `Database` as the API stores it (reference/database.md section 1).
//!
//! Holds what cannot be seen again, and what people and programs read. Must not decide what to say;
//! [`super::status`] does.

#![allow(unreachable_pub, reason = "the derive of a schema copies each struct into a function")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::KubeSchema;
use phased::deadline::Progress;
use phased::retry::Retry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parts::memory;
pub use crate::parts::reverts::Reverts;

/// The phases (reference/database.md section 2).
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The resource is accepted, or waits to be.
    Pending,
    /// Secrets, configuration and the StatefulSet are made.
    Provisioning,
    /// Services are made.
    Configuring,
    /// The pods roll out.
    Deploying,
    /// Login, database and round-trip are checked.
    Verifying,
    /// Everything holds.
    Ready,
    /// It went wrong and is tried again.
    Failed,
}

impl Phase {
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Provisioning => "Provisioning",
            Self::Configuring => "Configuring",
            Self::Deploying => "Deploying",
            Self::Verifying => "Verifying",
            Self::Ready => "Ready",
            Self::Failed => "Failed",
        }
    }
}

/// What the operator last saw and did.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
pub struct DatabaseStatus {
    /// The first rung that is not done.
    #[serde(
        default,
        deserialize_with = "memory::lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub phase: Option<Phase>,
    /// Since when this phase is shown.
    #[serde(
        default,
        deserialize_with = "memory::lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub phase_since: Option<Time>,
    /// Whether everything was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Secret with the application's credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Host and port for clients inside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Servers wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Servers ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Ready and wanted servers, `1/1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_summary: Option<String>,
    /// Pod of the primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// PostgreSQL's identifier of the data, recorded when first verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_identifier: Option<String>,
    /// The server's version, as it tells it itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// uid of the claim that holds the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Since when it is known to have served: when it was Ready for the first time.
    #[serde(
        default,
        deserialize_with = "memory::lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub serving_since: Option<Time>,
    /// When the outcome of verification last changed.
    #[serde(
        default,
        deserialize_with = "memory::lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_verified: Option<Time>,
    /// When the rollout last made progress.
    #[serde(
        default,
        deserialize_with = "memory::lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub progress: Option<Progress>,
    /// Failures since the last success.
    #[serde(
        default,
        deserialize_with = "memory::lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub retry: Option<Retry>,
    /// Edits by other managers that were taken back.
    #[serde(
        default,
        deserialize_with = "memory::lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub reverts: Option<Reverts>,
    /// `Ready`, `Progressing`, `Degraded`, and those of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = kube_core::ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
