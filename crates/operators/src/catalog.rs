//! One row a controller: its kind, what it watches, and what it may do, as data.
//!
//! `manifests` prints the permissions as RBAC: only the verbs that steps, questions and watches
//! use. Must not contain what the program around the controllers needs (leases, its own Events).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use phased::subject::Of;
use phased::{Controller, KindRef, Subject, Watch};

use crate::database::DatabaseController;
use crate::database::api::Database;
use crate::parts::kinds;
use crate::zookeeper::{self, ZookeeperController};

/// What a controller needs of the cluster.
#[derive(Clone)]
pub struct Row {
    /// Short name of the controller.
    pub name: &'static str,
    /// Its custom resource.
    pub kind: KindRef,
    /// What it watches besides.
    pub watches: Vec<Watch>,
    /// What it may do.
    pub permissions: Vec<Permission>,
    /// Its decisions.
    pub subject: &'static dyn Subject,
    /// Its definition: schema, columns, rules.
    pub definition: fn() -> CustomResourceDefinition,
}

/// Verbs on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Plural resource name, with the subresource if there is one.
    pub resource: String,
    /// Verbs, as RBAC spells them.
    pub verbs: Vec<&'static str>,
    /// What they are used for.
    pub why: &'static str,
}

const READ: [&str; 3] = ["get", "list", "watch"];

fn permission(kind: KindRef, verbs: &[&'static str], why: &'static str) -> Permission {
    Permission { group: kind.group, resource: kind.plural.to_owned(), verbs: verbs.to_vec(), why }
}

fn watched(kind: KindRef, verbs: &[&'static str], why: &'static str) -> Permission {
    permission(kind, &[&READ, verbs].concat(), why)
}

/// What every controller needs of its own kind.
fn own(kind: KindRef) -> Vec<Permission> {
    vec![
        watched(kind, &["patch"], "the resource and its finalizer"),
        below(kind, "status", &["patch"], "the status"),
        below(kind, "finalizers", &["update"], "owner references that hold a deletion back"),
    ]
}

fn below(kind: KindRef, suffix: &str, verbs: &[&'static str], why: &'static str) -> Permission {
    Permission {
        group: kind.group,
        resource: format!("{}/{suffix}", kind.plural),
        verbs: verbs.to_vec(),
        why,
    }
}

/// Every controller of the suite.
pub fn rows() -> Vec<Row> {
    vec![database(), zookeeper()]
}

/// The row of `Database`.
fn database() -> Row {
    let kind = DatabaseController::KIND;
    Row {
        name: DatabaseController::NAME,
        kind,
        watches: DatabaseController::watches(),
        subject: Of::<DatabaseController>::SUBJECT,
        definition: Database::crd,
        permissions: [own(kind), vec![
            watched(
                kinds::stateful_set_kind(),
                &["create", "patch", "delete"],
                "the servers; deleted only to change the claim template, under pods that stay once \
                 there are volumes",
            ),
            watched(
                kinds::service_kind(),
                &["create", "patch", "delete"],
                "the Services; only that of standbys is deleted, with the last of them",
            ),
            watched(
                kinds::budget_kind(),
                &["create", "patch", "delete"],
                "how many pods a drain may take; deleted with the last standby",
            ),
            watched(kinds::config_map_kind(), &["create", "patch"], "configuration files"),
            watched(
                kinds::secret_kind(),
                &["create", "patch", "delete"],
                "passwords; deleted only by deletionPolicy Delete",
            ),
            watched(
                kinds::claim_kind(),
                &["patch", "delete"],
                "the mark of whose a volume is, and its size; deleted only by deletionPolicy Delete",
            ),
            watched(
                kinds::pod_kind(),
                &["patch", "delete"],
                "causes and roles; deleted when it blocks a rollout or its standby needs a fresh start",
            ),
            permission(
                kinds::storage_class_kind(),
                &["get"],
                "whether the named class exists, and whether it expands",
            ),
            causes_in_events(),
        ]].concat(),
    }
}

/// The row of `ZookeeperCluster`.
fn zookeeper() -> Row {
    let kind = ZookeeperController::KIND;
    Row {
        name: ZookeeperController::NAME,
        kind,
        watches: ZookeeperController::watches(),
        subject: Of::<ZookeeperController>::SUBJECT,
        definition: zookeeper::definition::definition,
        permissions: [
            own(kind),
            vec![
                watched(
                    kinds::stateful_set_kind(),
                    &["create", "patch", "delete"],
                    "the servers; deleted before their volumes by reclaimPolicy Delete",
                ),
                watched(kinds::service_kind(), &["create", "patch"], "the Services"),
                watched(
                    kinds::budget_kind(),
                    &["create", "patch"],
                    "how many pods a drain may take",
                ),
                watched(kinds::config_map_kind(), &["create", "patch"], "configuration files"),
                watched(
                    kinds::service_account_kind(),
                    &["create", "patch"],
                    "the account that the pods run under, with its Secrets for pulling images",
                ),
                watched(
                    kinds::claim_kind(),
                    &["delete"],
                    "causes; deleted only by reclaimPolicy Delete, with the cluster",
                ),
                watched(
                    kinds::pod_kind(),
                    &["delete"],
                    "causes and readiness; deleted when it blocks a rollout",
                ),
                causes_in_events(),
            ],
        ]
        .concat(),
    }
}

/// Events tell what keeps a rollout back.
fn causes_in_events() -> Permission {
    Permission {
        group: "",
        resource: "events".to_owned(),
        verbs: vec!["list"],
        why: "causes of a stalled rollout",
    }
}
