//! The StatefulSet: servers, their volumes, their guard and their probes.
//!
//! One template for any number of replicas: what a pod is it learns from its own ordinal, so that the
//! first standby restarts nobody (docs/design/0002-standbys.md).
//!
//! The pod template is a promise: a release of the operator must not change it for an unchanged
//! spec, or every database restarts with the upgrade (fault catalogue G-64). Golden digests in
//! `tests/golden` hold it to that.

use phased::child::{Desired, TEMPLATE_ANNOTATION};
use phased::{Live, digest};
use serde_json::{Value, json};

use super::blueprint::Blueprint;
use super::config::{self, FOLDER, SOCKET_FOLDER};
use super::labels::{self, CONFIG_ANNOTATION, RESOURCE_UID_ANNOTATION};
use super::names::PORT;
use super::record;
use super::secrets::{PASSWORD_KEY, SUPERUSER_ROLE};
use super::services::PORT_NAME;

/// Where the volume is mounted.
const VOLUME_FOLDER: &str = "/var/lib/postgresql/data";
/// The data lie in a sub-folder, since the root of a volume may hold `lost+found` (field case
/// C-03); set explicitly, since PostgreSQL 18's image moved its default.
const DATA_FOLDER: &str = "/var/lib/postgresql/data/pgdata";
/// User and group of the official image.
const POSTGRES_ID: i64 = 999;
/// Name of the server's container.
pub const SERVER_CONTAINER: &str = "postgres";
/// Name of the guard's container.
pub const GUARD_CONTAINER: &str = "guard";

/// Looks at the data folder before the server may, and seeds standbys.
const GUARD_SCRIPT: &str = include_str!("guard.sh");
/// Where the guard finds the password of replication.
const REPLICATION_FOLDER: &str = "/etc/steadfast-replication";

/// The servers' set.
pub fn stateful_set(blueprint: &Blueprint) -> Desired {
    let names = &blueprint.names;
    let valid = &blueprint.valid;
    let annotations = json!({
        record::DATABASE.annotation: valid.database,
        record::USERNAME.annotation: valid.username,
        record::IDENTITY.annotation: blueprint.identity,
        record::IMAGE.annotation: valid.image,
    });
    let spec = json!({
        "replicas": blueprint.count,
        "serviceName": names.headless_service().name,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        // Without a partition of its own, the set's controller makes a missing pod from the old
        // revision, so a blocking pod that is deleted would come back as it was.
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "selector": {"matchLabels": labels::selector(&names.name)},
        "template": pod_template(blueprint),
        "volumeClaimTemplates": [claim_template(blueprint)],
    });
    let body = json!({"metadata": {"annotations": annotations}, "spec": spec});
    blueprint.owned(names.stateful_set(), body)
}

fn claim_template(blueprint: &Blueprint) -> Value {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": blueprint.valid.size}},
    });
    if let Some(class) = &blueprint.valid.storage_class {
        spec["storageClassName"] = json!(class);
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data",
            "labels": labels::child(&blueprint.names.name),
            "annotations": {RESOURCE_UID_ANNOTATION: blueprint.template_uid},
        },
        "spec": spec,
    })
}

/// The pod template, with its own digest in an annotation.
pub fn pod_template(blueprint: &Blueprint) -> Value {
    let mut template = plain_template(blueprint);
    let digest = digest::of(&template);
    template["metadata"]["annotations"][TEMPLATE_ANNOTATION] = json!(digest);
    template
}

/// Whether a pod was made from the template as it is now.
pub fn is_made_from(pod: &Live, blueprint: &Blueprint) -> bool {
    let wanted = digest::of(&plain_template(blueprint));
    pod.annotation(TEMPLATE_ANNOTATION) == Some(wanted.as_str())
}

fn plain_template(blueprint: &Blueprint) -> Value {
    let options = &blueprint.valid.pod;
    let mut pod_labels = options.labels.clone();
    pod_labels.extend(labels::child(&blueprint.names.name));
    let mut annotations = options.annotations.clone();
    annotations.insert(CONFIG_ANNOTATION.to_owned(), config::restart_digest(blueprint));
    let mut spec = json!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 120,
        "securityContext": pod_security(blueprint),
        "initContainers": [guard(blueprint)],
        "containers": [server(blueprint)],
        "volumes": [
            {"name": "config", "configMap": {"name": blueprint.names.config_map().name}},
            {"name": "replication", "secret": {
                "secretName": blueprint.names.replication_secret().name,
                "defaultMode": 0o440,
                "items": [{"key": PASSWORD_KEY, "path": PASSWORD_KEY}],
            }},
            {"name": "run", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
        ],
    });
    add_options(&mut spec, blueprint);
    json!({"metadata": {"labels": pod_labels, "annotations": annotations}, "spec": spec})
}

/// Options are declared only where they are used, so that fields of others stay theirs.
fn add_options(spec: &mut Value, blueprint: &Blueprint) {
    let options = &blueprint.valid.pod;
    let optional = [
        ("nodeSelector", (!options.node_selector.is_empty()).then(|| json!(options.node_selector))),
        ("affinity", options.affinity.as_ref().map(|a| json!(a))),
        ("tolerations", (!options.tolerations.is_empty()).then(|| json!(options.tolerations))),
        (
            "topologySpreadConstraints",
            (!options.topology_spread_constraints.is_empty())
                .then(|| json!(options.topology_spread_constraints)),
        ),
        ("priorityClassName", options.priority_class_name.as_ref().map(|p| json!(p))),
        (
            "imagePullSecrets",
            (!options.image_pull_secrets.is_empty()).then(|| json!(options.image_pull_secrets)),
        ),
        ("serviceAccountName", options.service_account_name.as_ref().map(|s| json!(s))),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            spec[field] = value;
        }
    }
}

/// Satisfies the restricted Pod Security Standard; the user's own fields are laid over it.
fn pod_security(blueprint: &Blueprint) -> Value {
    let mut context = json!({
        "runAsNonRoot": true,
        "runAsUser": POSTGRES_ID,
        "runAsGroup": POSTGRES_ID,
        "fsGroup": POSTGRES_ID,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let laid_over = blueprint.valid.pod.security_context.as_ref().map(|c| json!(c));
    if let (Some(base), Some(Value::Object(fields))) = (context.as_object_mut(), laid_over) {
        base.extend(fields);
    }
    context
}

fn container_security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
    })
}

/// What a pod needs is the larger of both containers' needs, and a quota on resources lets in no pod
/// whose containers do not all say them.
fn guard(blueprint: &Blueprint) -> Value {
    with_resources(
        blueprint,
        json!({
            "name": GUARD_CONTAINER,
            "image": blueprint.valid.image,
            "command": ["sh", "-c", GUARD_SCRIPT],
            "env": [
                {"name": "PGDATA", "value": DATA_FOLDER},
                pod_index(),
                {"name": "VOLUME", "value": VOLUME_FOLDER},
            ],
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": container_security(),
            "volumeMounts": [
                {"name": "data", "mountPath": VOLUME_FOLDER},
                {"name": "config", "mountPath": FOLDER, "readOnly": true},
                {"name": "replication", "mountPath": REPLICATION_FOLDER, "readOnly": true},
                {"name": "tmp", "mountPath": "/tmp"},
            ],
        }),
    )
}

/// The pod's ordinal, from the label that the StatefulSet's controller gives it.
fn pod_index() -> Value {
    let path = "metadata.labels['apps.kubernetes.io/pod-index']";
    json!({"name": "POD_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

fn server(blueprint: &Blueprint) -> Value {
    let superuser = blueprint.names.superuser_secret().name;
    let mut container = json!({
        "name": SERVER_CONTAINER,
        "image": blueprint.valid.image,
        "args": [
            "postgres",
            "-c", format!("config_file={FOLDER}/postgresql.conf"),
            "-c", format!("hba_file={FOLDER}/pg_hba.conf"),
            // By its name a standby shows in pg_stat_replication; a primary has no use for either.
            "-c", "cluster_name=$(POD_NAME)",
            "-c", "primary_slot_name=steadfast_$(POD_INDEX)",
        ],
        "env": [
            {"name": "PGDATA", "value": DATA_FOLDER},
            pod_index(),
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "POSTGRES_HOST_AUTH_METHOD", "value": "scram-sha-256"},
            {"name": "POSTGRES_INITDB_ARGS", "value": "--auth-local=trust --auth-host=scram-sha-256"},
            {"name": "POSTGRES_PASSWORD",
             "valueFrom": {"secretKeyRef": {"name": superuser, "key": PASSWORD_KEY}}},
        ],
        "ports": [{"name": PORT_NAME, "containerPort": PORT, "protocol": "TCP"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": container_security(),
        "volumeMounts": [
            {"name": "data", "mountPath": VOLUME_FOLDER},
            {"name": "config", "mountPath": FOLDER, "readOnly": true},
            {"name": "config", "mountPath": "/docker-entrypoint-initdb.d/10-steadfast.sql",
             "subPath": "10-steadfast.sql", "readOnly": true},
            {"name": "run", "mountPath": SOCKET_FOLDER},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    });
    probes(&mut container);
    with_resources(blueprint, container)
}

/// Readiness looks at the pod's own address, since the image's bootstrap server listens on the
/// socket only. A slow recovery is given an hour before the pod is killed (fault catalogue G-73).
fn probes(container: &mut Value) {
    let network = format!(
        "exec pg_isready -q -h \"$POD_IP\" -p {PORT} -U {SUPERUSER_ROLE} -d {SUPERUSER_ROLE}"
    );
    let socket = format!("exec pg_isready -q -h {SOCKET_FOLDER} -p {PORT} -U {SUPERUSER_ROLE}");
    let probe = |script: &str, period: u32, failures: u32, timeout: u32| {
        json!({
            "exec": {"command": ["sh", "-c", script]},
            "periodSeconds": period,
            "failureThreshold": failures,
            "timeoutSeconds": timeout,
        })
    };
    container["startupProbe"] = probe(&network, 2, 1800, 5);
    container["readinessProbe"] = probe(&network, 5, 3, 5);
    container["livenessProbe"] = probe(&socket, 20, 6, 10);
}

fn with_resources(blueprint: &Blueprint, mut container: Value) -> Value {
    let wanted = &blueprint.valid.resources;
    for (field, amounts) in [("limits", &wanted.limits), ("requests", &wanted.requests)] {
        if !amounts.is_empty() {
            container["resources"][field] = json!(amounts);
        }
    }
    container
}
