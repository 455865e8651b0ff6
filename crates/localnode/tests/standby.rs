//! A primary and a streaming standby in pods of a StatefulSet: one template, an init container that
//! copies with `pg_basebackup`, names of a headless Service, and labels that change while pods run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

mod bench;

use bench::{Bench, ask, bench, container_status, wait_for};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const SUPERUSER: &str = "user=postgres password=right";

/// Copies on every ordinal but the first, with a password that stands in no argument.
const SEED: &str = r#"[ "$POD_INDEX" = 0 ] && exit 0
umask 077
printf '*:*:*:repl:%s\n' "$(sed 's/[\\:]/\\&/g' /etc/secrets/repl)" > /tmp/pgpass
if [ ! -e "$PGDATA/standby.signal" ]; then
  rm -rf "$PGDATA"
  pg_basebackup -D "$PGDATA" -d "$(cat /etc/db/primary)" -S "slot_$POD_INDEX" -X stream -c fast -w || exit 1
  pg_controldata "$PGDATA" | sed -n 's/^Database system identifier: */copied /p'
  echo > "$PGDATA/standby.signal"
fi
"#;

fn settings(namespace: &str) -> Value {
    let primary = format!(
        "host=db-0.db-headless.{namespace}.svc user=repl passfile=/tmp/pgpass connect_timeout=10"
    );
    json!({
        "primary": primary,
        "pg_hba.conf": "local all all trust\nhost replication repl all scram-sha-256\n\
                        host all all all scram-sha-256\n",
        "postgresql.conf": format!(
            "listen_addresses = '*'\nhba_file = '/etc/db/pg_hba.conf'\nwal_retrieve_retry_interval = \
             '500ms'\nprimary_conninfo = '{primary}'\ninclude_if_exists = '/tmp/more.conf'\n"
        ),
    })
}

fn set(replicas: u32) -> Value {
    let environment = json!([
        {"name": "PGDATA", "value": "/var/lib/postgresql/data/pgdata"},
        {"name": "POD_INDEX", "valueFrom":
            {"fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}}},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "POSTGRES_PASSWORD",
         "valueFrom": {"secretKeyRef": {"name": "credentials", "key": "password"}}}]);
    let mounts = json!([
        {"name": "data", "mountPath": "/var/lib/postgresql/data"},
        {"name": "files", "mountPath": "/etc/db"},
        {"name": "secrets", "mountPath": "/etc/secrets"},
        {"name": "tmp", "mountPath": "/tmp"}]);
    let server = ["postgres", "-c", "config_file=/etc/db/postgresql.conf"];
    let own = ["-c", "cluster_name=$(POD_NAME)", "-c", "primary_slot_name=slot_$(POD_INDEX)"];
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas, "serviceName": "db-headless",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {
                    "terminationGracePeriodSeconds": 20,
                    "initContainers": [{
                        "name": "seed", "image": "postgres:17", "command": ["sh", "-c", SEED],
                        "env": environment, "volumeMounts": mounts,
                        "terminationMessagePolicy": "FallbackToLogsOnError"}],
                    "containers": [{
                        "name": "postgres", "image": "postgres:17",
                        "args": server.iter().chain(&own).collect::<Vec<_>>(),
                        "env": environment, "volumeMounts": mounts,
                        "ports": [{"name": "postgres", "containerPort": 5432}],
                        "readinessProbe": {
                            "exec": {"command": ["pg_isready", "-U", "postgres", "-h", "127.0.0.1"]},
                            "periodSeconds": 1, "timeoutSeconds": 5},
                        "terminationMessagePolicy": "FallbackToLogsOnError"}],
                    "volumes": [
                        {"name": "files", "configMap": {"name": "files"}},
                        {"name": "secrets", "secret": {"secretName": "credentials"}},
                        {"name": "tmp", "emptyDir": {}}]}},
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
                         "resources": {"requests": {"storage": "1Gi"}}}}]}})
}

async fn furnish(bench: &Bench) {
    bench.create_secret("credentials", json!({"password": "right", "repl": "its:own\\word"})).await;
    bench.create_config_map("files", settings(&bench.namespace)).await;
    for ordinal in 0..2 {
        bench.create_claim(&format!("data-db-{ordinal}")).await;
    }
    let services: Api<Service> = Api::namespaced(bench.client.clone(), &bench.namespace);
    let service = serde_json::from_value(json!({
        "metadata": {"name": "db-headless"},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": true, "selector": {"app": "db"},
                 "ports": [{"port": 5432}]}}));
    services
        .create(&PostParams::default(), &service.expect("a Service"))
        .await
        .expect("the Service is accepted");
}

async fn apply(bench: &Bench, replicas: u32) {
    let sets: Api<StatefulSet> = Api::namespaced(bench.client.clone(), &bench.namespace);
    let patch = Patch::Apply(set(replicas));
    sets.patch("db", &PatchParams::apply("test").force(), &patch).await.expect("it is applied");
}

const STREAM: &str = "SELECT string_agg(application_name || ' ' || state, ',') FROM \
                      pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()";

async fn until_streaming(primary: &Pod) {
    let streams = async || {
        ask(primary, SUPERUSER, STREAM).await.is_ok_and(|answer| answer == "db-1 streaming")
    };
    wait_for("a standby that streams", streams).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_copies_its_primary_and_streams() {
    let Some(bench) = bench().await else { return };
    furnish(&bench).await;
    apply(&bench, 1).await;
    let primary = bench.until_ready("db-0").await;
    apply(&bench, 2).await;
    let refused = |pod: &Pod| {
        let ended = container_status(pod, "seed").and_then(|one| one.last_state?.terminated);
        ended.is_some_and(|one| {
            one.message
                .unwrap_or_default()
                .contains("password authentication failed for user \"repl\"")
        })
    };
    bench.until("db-1", "the copy refused for want of a role", refused).await;
    let role = "WITH made AS (SELECT pg_create_physical_replication_slot('slot_1')) SELECT 'made' FROM \
                made";
    assert_eq!(ask(&primary, SUPERUSER, role).await.as_deref(), Ok("made"));
    execute(&primary, "CREATE ROLE repl LOGIN REPLICATION PASSWORD 'its:own\\word'").await;
    let standby = bench.until_ready("db-1").await;
    assert_ne!(bench::address(&primary), bench::address(&standby));
    until_streaming(&primary).await;
    execute(&primary, "CREATE TABLE seen AS SELECT 'there'::text AS how").await;
    until_streaming(&primary).await;
    assert_eq!(ask(&standby, SUPERUSER, "SELECT how FROM seen").await.as_deref(), Ok("there"));
    let refused = ask(&standby, SUPERUSER, "CREATE TABLE more ()").await;
    assert!(refused.expect_err("a standby only reads").starts_with("25006"));
    labels_change_while_it_runs(&bench, &standby).await;

    // The set is replaced without its pods, and the standby comes back to what it has.
    let sets: Api<StatefulSet> = Api::namespaced(bench.client.clone(), &bench.namespace);
    let orphaning = DeleteParams {
        propagation_policy: Some(kube::api::PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    sets.delete("db", &orphaning).await.expect("the set is deleted");
    wait_for("the set gone", async || sets.get_opt("db").await.is_ok_and(|set| set.is_none()))
        .await;
    apply(&bench, 2).await;
    let adopted = async || {
        let pod = bench.pods().get("db-1").await.expect("the pod can be read");
        let owned = pod.metadata.owner_references.is_some_and(|owners| !owners.is_empty());
        owned && pod.metadata.uid == standby.metadata.uid
    };
    wait_for("the pods taken back", adopted).await;
    bench.delete_pod("db-1").await;
    let anew = |pod: &Pod| bench::is_ready(pod) && pod.metadata.uid != standby.metadata.uid;
    bench.until("db-1", "Ready anew", anew).await;
    until_streaming(&primary).await;
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(bench.client.clone(), &bench.namespace);
    assert!(claims.get("data-db-1").await.is_ok(), "the volume outlived the pod");
}

async fn execute(pod: &Pod, sql: &str) {
    let config = format!("host={} port=5432 {SUPERUSER}", bench::address(pod));
    let (client, connection) =
        tokio_postgres::connect(&config, tokio_postgres::NoTls).await.expect("a connection");
    let connection = tokio::spawn(connection);
    client.batch_execute(sql).await.expect(sql);
    drop(client);
    let _ = connection.await;
}

async fn labels_change_while_it_runs(bench: &Bench, standby: &Pod) {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"example.com/role": "standby"}}}));
    bench.pods().patch("db-1", &PatchParams::default(), &patch).await.expect("labels may change");
    bench.until_event("Started container postgres").await;
    let pod = bench.until_ready("db-1").await;
    let id = |pod: &Pod| container_status(pod, "postgres").and_then(|status| status.container_id);
    assert_eq!(id(&pod), id(standby), "the server was not started again");
}
