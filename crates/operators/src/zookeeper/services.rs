//! Services, budget and service account.

use phased::child::Desired;
use serde_json::{Value, json};

use super::api::Texts;
use super::blueprint::Blueprint;
use super::valid::{ADMIN_SERVER, CLIENT, LEADER_ELECTION, METRICS, QUORUM};

/// Annotation that external-dns reads.
const EXTERNAL_DNS: &str = "external-dns.alpha.kubernetes.io/hostname";

/// Where clients connect.
pub fn client(blueprint: &Blueprint) -> Desired {
    let annotations = &blueprint.valid.raw.client_service.annotations;
    let spec = spec(blueprint, "ClusterIP", &[CLIENT]);
    service(blueprint, blueprint.names.client_service(), annotations, spec)
}

/// Names of the pods. Only ready ones resolve: the start script of the image takes a name that
/// resolves for an ensemble that serves.
pub fn headless(blueprint: &Blueprint) -> Desired {
    let id = blueprint.names.headless_service();
    let mut annotations = blueprint.valid.raw.headless_service.annotations.clone();
    if !blueprint.valid.domain.is_empty() {
        let host = format!("{}.{}", id.name, blueprint.valid.domain);
        annotations.insert(EXTERNAL_DNS.to_owned(), host);
    }
    let all = [CLIENT, QUORUM, LEADER_ELECTION, METRICS, ADMIN_SERVER];
    let mut spec = spec(blueprint, "ClusterIP", &all);
    spec["clusterIP"] = json!("None");
    service(blueprint, id, &annotations, spec)
}

/// The servers' own HTTP server.
pub fn admin(blueprint: &Blueprint) -> Desired {
    let options = &blueprint.valid.raw.admin_server_service;
    let kind = if options.external { "LoadBalancer" } else { "ClusterIP" };
    let spec = spec(blueprint, kind, &[ADMIN_SERVER]);
    service(blueprint, blueprint.names.admin_service(), &options.annotations, spec)
}

/// How many pods a drain may take at once.
pub fn budget(blueprint: &Blueprint) -> Desired {
    let spec = json!({
        "maxUnavailable": blueprint.valid.max_unavailable,
        "selector": {"matchLabels": blueprint.selector()},
    });
    let labels = blueprint.valid.labels.clone();
    blueprint.owned(blueprint.names.budget(), labels, json!({"spec": spec}))
}

/// The service account, if it is another one than every namespace's own.
pub fn account(blueprint: &Blueprint) -> Option<Desired> {
    let pod = &blueprint.valid.pod;
    if pod.service_account_name == super::valid::DEFAULT_SERVICE_ACCOUNT {
        return None;
    }
    let id = blueprint.names.service_account(&pod.service_account_name);
    let mut body = json!({});
    if !pod.image_pull_secrets.is_empty() {
        body["imagePullSecrets"] = json!(pod.image_pull_secrets);
    }
    Some(blueprint.owned(id, Texts::new(), body))
}

fn spec(blueprint: &Blueprint, kind: &str, ports: &[&str]) -> Value {
    let port = |name: &&str| {
        let number = blueprint.valid.port(name);
        json!({"name": format!("tcp-{name}"), "port": number, "protocol": "TCP"})
    };
    let ports: Vec<Value> = ports.iter().map(port).collect();
    json!({"type": kind, "selector": blueprint.selector(), "ports": ports})
}

fn service(
    blueprint: &Blueprint,
    id: phased::ObjectId,
    annotations: &Texts,
    spec: Value,
) -> Desired {
    let mut labels = blueprint.valid.labels.clone();
    let is_headless = (spec["clusterIP"] == "None").to_string();
    labels.insert("app".to_owned(), blueprint.names.name.clone());
    labels.insert("headless".to_owned(), is_headless);
    let mut body = json!({"spec": spec});
    if !annotations.is_empty() {
        body["metadata"]["annotations"] = json!(annotations);
    }
    blueprint.owned(id, labels, body)
}
