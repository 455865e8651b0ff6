//! A scenario on a node with kubelet and containers: a Database in a namespace of its own, its
//! operator, and the time that the whole took.

use std::sync::Arc;
use std::time::Instant;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kube::api::{Api, AttachParams, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use testbed::Cluster;
use testbed::images::POSTGRES_15;
use tokio::io::AsyncReadExt;

use super::sql::{Who, ask, login};
use super::{Bench, Operator, bench_of, exercise, is_ready, kubelet_bench, printed_rules};

/// Name of the scenario's Database.
pub(crate) const DB: &str = "test-db";

/// What a scenario plays on.
pub(crate) struct Scene {
    pub(crate) bench: Arc<Bench>,
    pub(crate) operator: Option<Operator>,
    name: &'static str,
    began: Instant,
}

impl Scene {
    /// An empty namespace with an operator; `None` when the machine cannot have a node.
    pub(crate) async fn open(name: &'static str) -> Option<Self> {
        Some(Self::furnished(kubelet_bench(&[POSTGRES_15]).await?, name).await)
    }

    /// The same on a cluster of the test's own.
    pub(crate) async fn on(cluster: &'static Cluster, name: &'static str) -> Self {
        Self::furnished(bench_of(cluster).await, name).await
    }

    async fn furnished(bench: Bench, name: &'static str) -> Self {
        let (bench, began) = (Arc::new(bench), Instant::now());
        let operator = Some(bench.operator("steadfast", &printed_rules()).await);
        Self { bench, operator, name, began }
    }

    /// A scenario that begins with a Database that is Ready and holds a row.
    pub(crate) async fn with_a_row(name: &'static str) -> Option<Self> {
        let scene = Self::open(name).await?;
        scene.apply(exercise()).await;
        scene.ready("to come up").await;
        scene.write_the_row().await;
        Some(scene)
    }

    /// Writes the row that [`Self::assert_the_row`] looks for.
    pub(crate) async fn write_the_row(&self) {
        let client = login(&self.bench, DB, Who::Application).await.expect("a login");
        let row = "CREATE TABLE keep (v text); INSERT INTO keep VALUES ('written before')";
        ask(&client, row).await.expect("a row");
    }

    /// Says what it took, and clears up.
    pub(crate) async fn close(self) {
        if let Some(operator) = self.operator {
            operator.stop().await;
        }
        eprintln!("scenario {}: {:.1} s", self.name, self.began.elapsed().as_secs_f32());
        let bench = Arc::into_inner(self.bench).expect("nobody else holds the bench");
        bench.strike().await;
    }

    /// As [`Self::close`], after a look at the row.
    pub(crate) async fn close_with_the_row(self) {
        self.assert_the_row().await;
        self.close().await;
    }

    /// The row is there, read through the client Service.
    pub(crate) async fn assert_the_row(&self) {
        let mut read = None;
        // A busy machine may miss a probe, and the server is behind no Service for that moment.
        let served = async || {
            let client = login(&self.bench, DB, Who::Application).await;
            let Ok(client) = client else { return false };
            read = ask(&client, "SELECT v FROM keep").await.ok();
            read.is_some()
        };
        self.bench.eventually("the row cannot be read", served).await;
        assert_eq!(read.as_deref(), Some("written before"));
    }

    pub(crate) async fn apply(&self, spec: Value) -> Value {
        self.bench.apply_database(DB, spec).await
    }

    /// Waits until the Database is Ready for the generation that is stored now.
    pub(crate) async fn ready(&self, what: &str) -> Value {
        self.until(what, is_ready).await
    }

    /// Waits for a state of the Database.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.bench.must(DB, what, holds).await
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.bench.client.clone(), &self.bench.namespace)
    }

    pub(crate) fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.bench.client.clone(), &self.bench.namespace)
    }

    /// The pod of an ordinal, if there is one.
    pub(crate) async fn pod(&self, ordinal: u32) -> Option<Pod> {
        self.pods().get_opt(&format!("{DB}-{ordinal}")).await.expect("readable")
    }

    /// uid and restarts of the pod of an ordinal: what changes when its server is started again.
    pub(crate) async fn life(&self, ordinal: u32) -> (Option<String>, i32) {
        let pod = self.pod(ordinal).await;
        let restarts = pod.as_ref().and_then(|p| p.status.as_ref()?.container_statuses.as_ref());
        let restarts = restarts.into_iter().flatten().map(|c| c.restart_count).sum();
        (pod.and_then(|pod| pod.uid()), restarts)
    }

    /// Deletes the pod of an ordinal, and waits until another has taken its place and is ready.
    pub(crate) async fn replace_pod(&self, ordinal: u32) {
        let (before, _) = self.life(ordinal).await;
        let name = format!("{DB}-{ordinal}");
        self.pods().delete(&name, &DeleteParams::default()).await.expect("deletable");
        let replaced = |pod: &Pod| pod.uid() != before && pod_is_ready(pod);
        let holds = async || self.pod(ordinal).await.as_ref().is_some_and(replaced);
        self.bench.eventually("the pod is not replaced", holds).await;
    }

    /// Runs a command in the server's container of an ordinal; what it printed.
    pub(crate) async fn exec(&self, ordinal: u32, command: &[&str]) -> String {
        let name = format!("{DB}-{ordinal}");
        let params = AttachParams::default().stderr(false);
        let mut running = self.pods().exec(&name, command.to_vec(), &params).await.expect("exec");
        let mut printed = String::new();
        let mut output = running.stdout().expect("asked for");
        output.read_to_string(&mut printed).await.expect("text");
        running.join().await.expect("the command ends");
        printed
    }

    /// Changes an object of the namespace as a person would.
    pub(crate) async fn patch(
        &self,
        (group, kind, plural): (&str, &str, &str),
        name: &str,
        patch: Value,
    ) {
        let api = self.bench.api(group, kind, plural);
        let params =
            PatchParams { field_manager: Some("kubectl".to_owned()), ..Default::default() };
        api.patch(name, &params, &Patch::Merge(patch)).await.expect("patchable");
    }

    /// Writes a password into the application's Secret.
    pub(crate) async fn set_password(&self, password: &str) {
        let secret = ("", "Secret", "secrets");
        let patch = json!({"stringData": {"password": password}});
        self.patch(secret, &format!("{DB}-credentials"), patch).await;
    }

    pub(crate) async fn stop_operator(&mut self) {
        self.operator.take().expect("it runs").stop().await;
    }

    pub(crate) async fn start_operator(&mut self) {
        self.operator = Some(self.bench.operator("steadfast", &printed_rules()).await);
    }
}

pub(crate) fn pod_is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True");
    ready && pod.metadata.deletion_timestamp.is_none()
}
