//! The pod template.
//!
//! It is a promise twice over: to clusters of the replaced operator, whose pods a takeover must not
//! restart, and to our own, which must not restart with a release of the operator (fault catalogue
//! G-64). Orders of lists are part of it.

use serde_json::{Value, json};

use super::blueprint::Blueprint;
use super::family::{CONTAINER, START_SCRIPT};
use super::options::Probe;
use super::valid::Storage;

/// Annotation on the template: digest of a configuration that is not the baseline's.
pub const CONFIG_ANNOTATION: &str = "steadfast.dev/config";
/// Annotation on the template: when every pod was last made anew on request.
pub const RESTART_ANNOTATION: &str = "restartTime";
/// Label of every pod of a cluster.
pub const MEMBER_KIND: &str = "ZookeeperMember";

/// The template.
pub fn template(blueprint: &Blueprint) -> Value {
    let (name, pod) = (&blueprint.names.name, &blueprint.valid.pod);
    let mut labels = blueprint.valid.labels.clone();
    labels.extend(pod.labels.clone());
    labels.insert("app".to_owned(), name.clone());
    labels.insert("kind".to_owned(), MEMBER_KIND.to_owned());
    let mut annotations = pod.annotations.clone();
    if let Some(time) = &blueprint.recorded.restart_time {
        annotations.entry(RESTART_ANNOTATION.to_owned()).or_insert_with(|| time.clone());
    }
    if let Some(digest) = blueprint.template_digest() {
        annotations.insert(CONFIG_ANNOTATION.to_owned(), digest);
    }
    let mut metadata = json!({"generateName": name, "labels": labels});
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    json!({"metadata": metadata, "spec": spec(blueprint)})
}

fn spec(blueprint: &Blueprint) -> Value {
    let (valid, pod) = (&blueprint.valid, &blueprint.valid.pod);
    let mut containers: Vec<Value> = valid.raw.containers.iter().map(|c| json!(c)).collect();
    containers.push(server(blueprint));
    let grace = pod.termination_grace_period_seconds.filter(|seconds| *seconds != 0).unwrap_or(30);
    let affinity = pod.affinity.as_ref().map_or_else(|| default_affinity(blueprint), |a| json!(a));
    let mut spec = json!({
        "containers": containers,
        "affinity": affinity,
        "terminationGracePeriodSeconds": grace,
        "serviceAccountName": pod.service_account_name,
        "volumes": volumes(blueprint),
    });
    let optional = [
        ("nodeSelector", (!pod.node_selector.is_empty()).then(|| json!(pod.node_selector))),
        ("tolerations", (!pod.tolerations.is_empty()).then(|| json!(pod.tolerations))),
        (
            "topologySpreadConstraints",
            (!pod.topology_spread_constraints.is_empty())
                .then(|| json!(pod.topology_spread_constraints)),
        ),
        ("securityContext", pod.security_context.as_ref().map(|context| json!(context))),
        (
            "initContainers",
            (!valid.raw.init_containers.is_empty()).then(|| json!(valid.raw.init_containers)),
        ),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            spec[field] = value;
        }
    }
    spec
}

/// Servers rather on different nodes.
fn default_affinity(blueprint: &Blueprint) -> Value {
    json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 20,
        "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchExpressions": [
                {"key": "app", "operator": "In", "values": [blueprint.names.name]},
            ]},
        },
    }]}})
}

fn volumes(blueprint: &Blueprint) -> Vec<Value> {
    let mut all: Vec<Value> = blueprint.valid.raw.volumes.iter().map(|v| json!(v)).collect();
    if let Storage::Ephemeral(source) = &blueprint.valid.storage {
        all.push(json!({"name": "data", "emptyDir": source}));
    }
    all.push(json!({"name": "conf", "configMap": {"name": blueprint.names.config_map().name}}));
    all
}

fn server(blueprint: &Blueprint) -> Value {
    let (valid, pod) = (&blueprint.valid, &blueprint.valid.pod);
    let mut environment = vec![json!({
        "name": "ENVOY_SIDECAR_STATUS",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['sidecar.istio.io/status']"}},
    })];
    environment.extend(pod.env.iter().map(|variable| json!(variable)));
    let mut mounts: Vec<Value> = valid.raw.volume_mounts.iter().map(|m| json!(m)).collect();
    mounts.push(json!({"name": "data", "mountPath": "/data"}));
    mounts.push(json!({"name": "conf", "mountPath": "/conf"}));
    let (ready, alive) = valid.probes;
    let mut container = json!({
        "name": CONTAINER,
        "image": valid.image_name(),
        "imagePullPolicy": valid.image.pull_policy,
        "command": [START_SCRIPT],
        "ports": ports(blueprint),
        "env": environment,
        "volumeMounts": mounts,
        "readinessProbe": probe(ready, "zookeeperReady.sh"),
        "livenessProbe": probe(Probe { success_threshold: 0, ..alive }, "zookeeperLive.sh"),
        "lifecycle": {"preStop": {"exec": {"command": ["zookeeperTeardown.sh"]}}},
    });
    if pod.resources.contains_key("limits") || pod.resources.contains_key("requests") {
        container["resources"] = json!(pod.resources);
    }
    container
}

/// Ports with their protocol, which is part of a port's identity.
fn ports(blueprint: &Blueprint) -> Vec<Value> {
    let with_protocol = |port| {
        let mut port = json!(port);
        if port["protocol"].is_null() {
            port["protocol"] = json!("TCP");
        }
        port
    };
    blueprint.valid.ports.iter().map(with_protocol).collect()
}

/// A probe. A number that is 0 is Kubernetes' own default.
fn probe(numbers: Probe, script: &str) -> Value {
    let mut probe = json!(numbers);
    probe["exec"] = json!({"command": [script]});
    probe
}
