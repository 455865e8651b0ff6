//! A bench on a real control plane: node with real PostgreSQL (pods as processes, or a kubelet with
//! containers), operator with exactly its own permissions, and what tests ask of them. Holds no
//! assertions about the operator.

#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::panic, reason = "a scenario that cannot go on says where")]

#[path = "../support/session.rs"]
pub(crate) mod session;

pub(crate) mod kubectl;
pub(crate) mod process;
pub(crate) mod scene;
pub(crate) mod sql;
pub(crate) mod trouble;
pub(crate) mod update;
mod waiting;
pub(crate) mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use localnode::LocalNode;
use runner::clock::SystemClock;
use runner::external::dial::{Dialer, Stream};
use runner::random::SystemRandom;
use runner::{Config, Environment, Runner};
use serde_json::{Value, json};
use steadfast::controllers;
use testbed::images::Recipe;
use testbed::{ControlPlane, Identity};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longest wait for anything; a machine shared by many builds is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// A namespace of its own on the shared control plane, with a node.
pub(crate) struct Bench {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) client: kube::Client,
    pub(crate) namespace: String,
    node: Node,
}

/// What runs the pods.
enum Node {
    /// Processes of this machine.
    Local(LocalNode),
    /// A kubelet with containers, shared by the benches of one test binary.
    Kubelet,
}

/// A running operator.
pub(crate) struct Operator {
    pub(crate) identity: String,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Operator {
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}

/// The bench, or `None` after saying `SKIPPED` when the machine lacks the programs.
pub(crate) async fn bench() -> Option<Bench> {
    testbed::require_or_skip().expect("the control plane's programs are required")?;
    require_postgres()?;
    let plane = ControlPlane::shared().await.expect("the control plane starts");
    Some(bench_on(plane).await)
}

/// A control plane that also asks who may set owner references, as some distributions do; `None`
/// where the machine lacks the programs.
pub(crate) async fn strict_plane() -> Option<&'static ControlPlane> {
    testbed::require_or_skip().expect("the control plane's programs are required")?;
    require_postgres()?;
    let options = testbed::Options {
        api_server_arguments: vec![
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".to_owned(),
        ],
        ..testbed::Options::default()
    };
    let plane = ControlPlane::start(options).await.expect("the control plane starts");
    // Tests share it to their end; it dies with this process.
    Some(Box::leak(Box::new(plane)))
}

/// A namespace of its own on `plane`, with a node.
pub(crate) async fn bench_on(plane: &'static ControlPlane) -> Bench {
    let (client, namespace) = furnish(plane).await;
    apply(
        &client,
        &json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "local", "annotations":
                {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": localnode::PROVISIONER, "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": true,
        }),
    )
    .await;
    let options = localnode::Options {
        node_name: format!("local-{namespace}"),
        namespaces: Some(BTreeSet::from([namespace.clone()])),
        ..localnode::Options::default()
    };
    let node = LocalNode::start(client.clone(), options).await.expect("the node starts");
    Bench { plane, client, namespace, node: Node::Local(node) }
}

/// A namespace of its own on a cluster with kubelet and containers; `None` after saying `SKIPPED`
/// when the machine lacks what that needs.
pub(crate) async fn kubelet_bench(images: &[Recipe]) -> Option<Bench> {
    if !testbed::node::require_or_skip(images).expect("the node's programs are required") {
        return None;
    }
    let cluster = testbed::Cluster::shared().await.expect("the cluster starts");
    for image in images {
        cluster.load(image).await.expect("the image is imported");
    }
    Some(bench_of(cluster).await)
}

/// A namespace of its own on a cluster.
pub(crate) async fn bench_of(cluster: &'static testbed::Cluster) -> Bench {
    let plane = cluster.plane();
    let (client, namespace) = furnish(plane).await;
    Bench { plane, client, namespace, node: Node::Kubelet }
}

/// Installs the definitions, and makes a namespace.
async fn furnish(plane: &ControlPlane) -> (kube::Client, String) {
    let client = plane.client().await.expect("a client");
    let crds: Vec<_> = steadfast::manifests::crds()
        .expect("the definitions are serialisable")
        .into_iter()
        .map(|crd| serde_json::from_value(crd).expect("a definition"))
        .collect();
    plane.install_crds(&crds).await.expect("the definitions are accepted");
    let namespace = plane.create_namespace("db").await.expect("a namespace");
    (client, namespace)
}

/// Nothing when PostgreSQL's programs are here; else `SKIPPED`, or a failure where asked.
fn require_postgres() -> Option<()> {
    if localnode::programs::find().is_some() {
        return Some(());
    }
    let required = std::env::var("STEADFAST_REQUIRE_ALL").is_ok_and(|value| value == "1");
    assert!(!required, "PostgreSQL's programs are required and are not on this machine");
    // The macros' output would be hidden by the test harness.
    let _ = writeln!(io::stderr(), "SKIPPED: PostgreSQL's programs are not on this machine");
    None
}

impl Bench {
    /// Grants the rules to a service account of that name; a client of its own.
    pub(crate) async fn grant(&self, name: &str, rules: &[Value]) -> kube::Client {
        let namespace = &self.namespace;
        let role = format!("{name}-{namespace}");
        let rbac = "rbac.authorization.k8s.io";
        for object in [
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": namespace}}),
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole",
                "metadata": {"name": role}, "rules": rules}),
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding",
                "metadata": {"name": role},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]}),
        ] {
            apply(&self.client, &object).await;
        }
        let identity = Identity::service_account(namespace, name);
        self.plane.client_as(&identity).await.expect("a client for the operator")
    }

    /// Grants the rules to a fresh service account, and starts an operator as exactly that.
    pub(crate) async fn operator(&self, name: &str, rules: &[Value]) -> Operator {
        let client = self.grant(name, rules).await;
        let namespace = &self.namespace;
        let environment = Environment {
            client,
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            dialer: Arc::new(PodDialer(self.client.clone())),
        };
        let config = Config { namespaces: vec![namespace.clone()], ..Config::default() };
        let runner = controllers::all(Runner::new(environment, config));
        let stop = CancellationToken::new();
        let task = tokio::spawn(runner.run(stop.clone()));
        let identity = format!("system:serviceaccount:{namespace}:{name}");
        Operator { identity, stop, task }
    }

    /// Applies a Database with this spec, as `kubectl apply --server-side` does.
    pub(crate) async fn apply_database(&self, name: &str, spec: Value) -> Value {
        apply(
            &self.client,
            &json!({
                "apiVersion": "database.example.com/v1", "kind": "Database",
                "metadata": {"name": name, "namespace": self.namespace}, "spec": spec,
            }),
        )
        .await
    }

    pub(crate) fn api(&self, group: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(group, "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// The resources of a kind of any version.
    pub(crate) fn api_of(&self, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    pub(crate) fn databases(&self) -> Api<DynamicObject> {
        self.api("database.example.com", "Database", "databases")
    }

    /// The Database as stored, `null` when it is gone.
    pub(crate) async fn database(&self, name: &str) -> Value {
        let found = self.databases().get_opt(name).await.expect("readable");
        found.map_or(Value::Null, |d| serde_json::to_value(d).expect("serialisable"))
    }

    /// Everything that a Database is made of, with its kind.
    pub(crate) async fn children(&self, name: &str) -> Vec<(&'static str, DynamicObject)> {
        let params = ListParams::default().labels(&format!("app.kubernetes.io/instance={name}"));
        let mut all = Vec::new();
        for (group, kind, plural) in CHILD_KINDS {
            let found = self.api(group, kind, plural).list(&params).await.expect("readable");
            all.extend(found.into_iter().map(|object| (*kind, object)));
        }
        all
    }

    /// Everything in the namespace that tells why something did not happen.
    pub(crate) async fn describe(&self) -> String {
        let mut text = String::new();
        for (group, kind, plural) in
            [("", "Pod", "pods"), ("", "PersistentVolumeClaim", "persistentvolumeclaims")]
        {
            for mut object in self
                .api(group, kind, plural)
                .list(&ListParams::default())
                .await
                .into_iter()
                .flatten()
            {
                object.metadata.managed_fields = None;
                let shown = serde_json::to_string(&(&object.metadata, &object.data["status"]));
                text.push_str(&format!("{kind}: {}\n", shown.unwrap_or_default()));
            }
        }
        for event in
            self.api("", "Event", "events").list(&ListParams::default()).await.into_iter().flatten()
        {
            let data = &event.data;
            text.push_str(&format!("Event: {} {}\n", data["reason"], data["message"]));
        }
        text
    }

    /// Clears up: what runs here must not slow the tests that follow.
    pub(crate) async fn strike(self) {
        match self.node {
            Node::Local(node) => node.stop().await,
            Node::Kubelet => {
                let namespaces: Api<Namespace> = Api::all(self.client.clone());
                let gone = namespaces.delete(&self.namespace, &DeleteParams::background()).await;
                gone.expect("the namespace is deletable");
            }
        }
    }
}

/// Kinds of a Database's children, with group and plural.
pub(crate) const CHILD_KINDS: &[(&str, &str, &str)] = &[
    ("", "Secret", "secrets"),
    ("", "ConfigMap", "configmaps"),
    ("", "Service", "services"),
    ("", "Pod", "pods"),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("apps", "StatefulSet", "statefulsets"),
    ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
];

/// The rules of the ClusterRole that `steadfast manifests` prints.
pub(crate) fn printed_rules() -> Vec<Value> {
    let role = steadfast::manifests::cluster_role();
    role["rules"].as_array().cloned().expect("a ClusterRole has rules")
}

/// The spec of the exercise's manifest.
pub(crate) fn exercise() -> Value {
    json!({"image": "postgres:15", "replicas": 1, "databaseName": "mydb", "username": "admin",
        "storage": {"size": "1Gi"}})
}

pub(crate) fn is_ready(database: &Value) -> bool {
    let ready = condition(database, "Ready");
    database["status"]["phase"] == "Ready"
        && ready["status"] == "True"
        && ready["observedGeneration"] == database["metadata"]["generation"]
}

/// Whether so many servers are there, Ready, nothing lacking.
pub(crate) fn is_whole(database: &Value, replicas: u32) -> bool {
    is_ready(database)
        && database["status"]["replicaSummary"] == format!("{replicas}/{replicas}")
        && condition(database, "Degraded")["status"] == "False"
}

pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    object["status"]["conditions"]
        .as_array()
        .and_then(|all| all.iter().find(|c| c["type"] == kind).cloned())
        .unwrap_or(Value::Null)
}

/// Server-side apply of one object, forced, as the person at the console.
pub(crate) async fn apply(client: &kube::Client, object: &Value) -> Value {
    let parsed: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
    let types = parsed.types.clone().expect("apiVersion and kind");
    let gvk = GroupVersionKind::try_from(&types).expect("a kind");
    let resource = ApiResource::from_gvk(&gvk);
    let api: Api<DynamicObject> = match &parsed.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = parsed.metadata.name.clone().expect("a name");
    let params = PatchParams::apply("kubectl").force();
    let applied = api.patch(&name, &params, &Patch::Apply(object)).await;
    serde_json::to_value(applied.expect("the object is accepted")).expect("serialisable")
}

/// Connects to a ready pod behind a Service. A real API server takes no loopback address in an
/// EndpointSlice, and the pods of the local node have nothing else.
pub(crate) struct PodDialer(pub(crate) kube::Client);

impl PodDialer {
    pub(crate) async fn address(&self, host: &str) -> io::Result<String> {
        let parts: Vec<&str> = host.split('.').collect();
        let (service, namespace) = match parts.as_slice() {
            [pod, _, namespace, "svc", ..] => return self.address_of_pod(pod, namespace).await,
            [service, namespace, ..] => (*service, *namespace),
            _ => return Ok(host.to_owned()),
        };
        let services: Api<Service> = Api::namespaced(self.0.clone(), namespace);
        let service = services.get(service).await.map_err(io::Error::other)?;
        let selector: BTreeMap<String, String> =
            service.spec.and_then(|s| s.selector).unwrap_or_default();
        let labels: Vec<String> = selector.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let pods: Api<Pod> = Api::namespaced(self.0.clone(), namespace);
        let found = pods.list(&ListParams::default().labels(&labels.join(","))).await;
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let ready = found.map_err(io::Error::other)?.items.into_iter().find(|pod| {
            let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
            conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
        });
        ready.and_then(|pod| pod.status?.pod_ip).ok_or_else(refused)
    }

    async fn address_of_pod(&self, pod: &str, namespace: &str) -> io::Result<String> {
        let pods: Api<Pod> = Api::namespaced(self.0.clone(), namespace);
        let pod = pods.get(pod).await.map_err(io::Error::other)?;
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        pod.status.and_then(|status| status.pod_ip).ok_or_else(refused)
    }
}

impl Dialer for PodDialer {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let address = self.address(host).await?;
            let stream = tokio::net::TcpStream::connect((address.as_str(), port)).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}
