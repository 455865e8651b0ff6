//! What the tests of the node share: a real API server with a node beside it, in a namespace of the
//! test's own. Holds no assertions about the node.

// Each test program uses its own part of this module.
#![allow(dead_code, unreachable_pub)]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    ConfigMap, Event, PersistentVolume, PersistentVolumeClaim, Pod, Secret,
};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use localnode::{LocalNode, Options};
use serde_json::{Value, json};
use testbed::ControlPlane;

/// Longest wait for anything; a machine shared by many builds is slow.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A namespace with a node.
pub struct Bench {
    pub client: Client,
    pub namespace: String,
    pub node: Option<LocalNode>,
    pub state_dir: PathBuf,
}

/// The bench, or `None` after printing `SKIPPED` when this machine lacks the programs.
pub async fn bench() -> Option<Bench> {
    let mut bench = bench_without_node().await?;
    let node =
        LocalNode::start(bench.client.clone(), bench.options()).await.expect("the node starts");
    bench.state_dir = node.state_dir().to_path_buf();
    bench.node = Some(node);
    Some(bench)
}

/// The same with the node still to be started.
pub async fn bench_without_node() -> Option<Bench> {
    testbed::require_or_skip().expect("the control plane's programs are required")?;
    require_postgres()?;
    let plane = ControlPlane::shared().await.expect("the control plane starts");
    let client = plane.client().await.expect("a client");
    let namespace = plane.create_namespace("node").await.expect("a namespace");
    Some(Bench { client, namespace, node: None, state_dir: PathBuf::new() })
}

/// Nothing when PostgreSQL's programs are here; else `SKIPPED` is printed, or the test fails where asked.
pub fn require_postgres() -> Option<()> {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| value == "1");
    let skipped = |reason: &str| {
        // The macros' output would be hidden by the test harness.
        writeln!(std::io::stderr(), "SKIPPED: {reason}").expect("standard error takes a line");
        None
    };
    if is_set("STEADFAST_HERMETIC") {
        return skipped("STEADFAST_HERMETIC=1 leaves out what needs programs of the machine");
    }
    if localnode::programs::find().is_some() {
        return Some(());
    }
    assert!(
        !is_set("STEADFAST_REQUIRE_ALL"),
        "PostgreSQL's programs are required and are not on this machine"
    );
    skipped("PostgreSQL's programs (postgres, initdb, psql) are not on this machine")
}

impl Bench {
    pub fn options(&self) -> Options {
        Options {
            node_name: format!("local-{}", self.namespace),
            namespaces: Some(BTreeSet::from([self.namespace.clone()])),
            ..Options::default()
        }
    }

    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn create_pod(&self, pod: Value) -> Pod {
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        self.pods().create(&PostParams::default(), &pod).await.expect("the pod is accepted")
    }

    pub async fn create_secret(&self, name: &str, entries: Value) {
        let secret: Secret =
            serde_json::from_value(json!({"metadata": {"name": name}, "stringData": entries}))
                .expect("a Secret");
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        api.create(&PostParams::default(), &secret).await.expect("the Secret is accepted");
    }

    pub async fn create_config_map(&self, name: &str, entries: Value) {
        let object: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": name}, "data": entries}))
                .expect("a ConfigMap");
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        api.create(&PostParams::default(), &object).await.expect("the ConfigMap is accepted");
    }

    /// A volume and a claim that the control plane binds to each other.
    pub async fn create_claim(&self, name: &str) {
        let volume_name = format!("{}-{name}", self.namespace);
        let size = json!({"storage": "1Gi"});
        let volume: PersistentVolume =
            serde_json::from_value(json!({"metadata": {"name": volume_name}, "spec": {
            "capacity": size, "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/nowhere"}}}))
            .expect("a volume");
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({"metadata": {"name": name}, "spec": {
            "resources": {"requests": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "volumeName": volume_name}}))
        .expect("a claim");
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(self.client.clone(), &self.namespace);
        volumes.create(&PostParams::default(), &volume).await.expect("the volume is accepted");
        claims.create(&PostParams::default(), &claim).await.expect("the claim is accepted");
    }

    /// Waits until the pod satisfies the condition, or fails with everything known about it.
    pub async fn until(&self, name: &str, what: &str, holds: impl Fn(&Pod) -> bool) -> Pod {
        let begun = std::time::Instant::now();
        loop {
            let pod = self.pods().get_opt(name).await.expect("the pod can be read");
            if let Some(pod) = pod.clone().filter(|pod| holds(pod)) {
                return pod;
            }
            if begun.elapsed() > PATIENCE {
                let status = pod.and_then(|pod| pod.status);
                let log = self
                    .node
                    .as_ref()
                    .and_then(|node| node.logs(&self.namespace, name, "postgres"));
                panic!(
                    "{name} never came to: {what}\nstatus: {}\nevents: {:#?}\nlog: {}",
                    serde_json::to_string_pretty(&status).expect("JSON"),
                    self.event_lines().await,
                    log.unwrap_or_default()
                );
            }
            // poll: the API server; the loop also ends on a deadline and shows the last state
            // poll: each look is a request of its own, bounded by the patience above
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn until_ready(&self, name: &str) -> Pod {
        self.until(name, "Ready", is_ready).await
    }

    /// `reason: message` of every event of the namespace.
    pub async fn event_lines(&self) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let list = events.list(&ListParams::default()).await.expect("events can be listed");
        list.into_iter()
            .map(|event| {
                format!(
                    "{}: {}",
                    event.reason.unwrap_or_default(),
                    event.message.unwrap_or_default()
                )
            })
            .collect()
    }

    /// Waits until an event line contains the text.
    pub async fn until_event(&self, text: &str) {
        wait_for(&format!("an event with {text:?}"), async || {
            self.event_lines().await.iter().any(|line| line.contains(text))
        })
        .await;
    }

    pub async fn delete_pod(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.expect("the pod can be deleted");
    }

    pub async fn until_gone(&self, name: &str) {
        wait_for(&format!("{name} gone"), async || {
            self.pods().get_opt(name).await.expect("the pod can be read").is_none()
        })
        .await;
    }
}

/// Waits until the condition holds, or fails.
pub async fn wait_for(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "never came: {what}");
        // poll: the API server; the loop also ends on a deadline and shows the last state
        // poll: each look is a request of its own, bounded by the patience above
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

/// The waiting reason and message of a pod's only or named container.
pub fn waiting(pod: &Pod, container: &str) -> Option<(String, String)> {
    let state = container_status(pod, container)?.state?.waiting?;
    Some((state.reason.unwrap_or_default(), state.message.unwrap_or_default()))
}

pub fn container_status(
    pod: &Pod,
    container: &str,
) -> Option<k8s_openapi::api::core::v1::ContainerStatus> {
    let status = pod.status.as_ref()?;
    let all = status
        .container_statuses
        .iter()
        .flatten()
        .chain(status.init_container_statuses.iter().flatten());
    all.into_iter().find(|status| status.name == container).cloned()
}

pub fn address(pod: &Pod) -> String {
    pod.status.as_ref().and_then(|status| status.pod_ip.clone()).expect("the pod has an address")
}

/// Logs in over the pod's address and asks a question; an answer of NULL is the word `NULL`.
pub async fn ask(pod: &Pod, login: &str, question: &str) -> Result<String, String> {
    let config = format!("host={} port=5432 connect_timeout=5 {login}", address(pod));
    let describe = |error: tokio_postgres::Error| match error.as_db_error() {
        Some(server) => format!("{}: {}", server.code().code(), server.message()),
        None => error.to_string(),
    };
    let (client, connection) =
        tokio_postgres::connect(&config, tokio_postgres::NoTls).await.map_err(describe)?;
    let connection = tokio::spawn(connection);
    let row = client.query_one(question, &[]).await;
    let answer = row.and_then(|row| row.try_get::<_, Option<String>>(0)).map_err(describe);
    drop(client);
    let _ = connection.await;
    answer.map(|text| text.unwrap_or_else(|| "NULL".to_owned()))
}

/// A pod with one PostgreSQL container, shaped as a StatefulSet would make it.
pub fn postgres_pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "db"}},
        "spec": {
            "terminationGracePeriodSeconds": 20,
            "containers": [{
                "name": "postgres",
                "image": "postgres:17",
                "env": [
                    {"name": "POSTGRES_PASSWORD",
                     "valueFrom": {"secretKeyRef": {"name": "credentials", "key": "password"}}},
                    {"name": "PGDATA", "value": "/var/lib/postgresql/data/pgdata"}],
                "ports": [{"name": "postgres", "containerPort": 5432}],
                "readinessProbe": {"exec": {"command": ["pg_isready", "-U", "postgres", "-h", "127.0.0.1"]},
                    "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 5},
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql/data"}]}],
            "volumes": [{"name": "data", "emptyDir": {}}]}})
}

/// Process numbers (no zombies) whose working folder or arguments lie below a folder.
pub fn processes_below(folder: &std::path::Path) -> Vec<String> {
    let text = folder.to_string_lossy().into_owned();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()))
        .filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let state = stat.rsplit(") ").next()?.chars().next()?;
            let at = std::fs::read_link(entry.path().join("cwd")).ok();
            let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
            let below = at.is_some_and(|at| at.starts_with(folder)) || arguments.contains(&text);
            (below && !matches!(state, 'Z' | 'X'))
                .then(|| format!("{} {arguments}", stat.split(' ').next().unwrap_or("")))
        })
        .collect()
}

/// Name of a pod, for messages.
pub fn name_of(pod: &Pod) -> String {
    pod.name_any()
}
