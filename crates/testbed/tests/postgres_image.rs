//! The images `postgres` keep what other people's manifests expect of the official image.

mod pods;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::Api;
use kube::api::{DeleteParams, LogParams, PostParams};
use kube::runtime::wait::conditions::is_deleted;
use pods::{PASSWORD, database, exec};
use serde_json::{Value, json};
use testbed::images::{POSTGRES_15, POSTGRES_17};
use testbed::{Cluster, node};

/// The shared cluster's client with both images there, and a namespace of the test's own.
async fn place(prefix: &str) -> Result<Option<(kube::Client, String)>> {
    if !node::require_or_skip(&[POSTGRES_15, POSTGRES_17])? {
        return Ok(None);
    }
    let cluster = Cluster::shared().await?;
    cluster.load(&POSTGRES_15).await?;
    cluster.load(&POSTGRES_17).await?;
    let namespace = cluster.plane().create_namespace(prefix).await?;
    Ok(Some((cluster.plane().client().await?, namespace)))
}

fn with_environment(mut pod: Value, environment: &[(&str, &str)]) -> Value {
    let variables: Vec<_> =
        environment.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    pod["spec"]["containers"][0]["env"] = json!(variables);
    pod
}

async fn ask(pods: &Api<Pod>, name: &str, sql: &str) -> Result<String> {
    exec(pods, name, &["psql", "--username=postgres", "-Atc", sql]).await
}

#[tokio::test]
async fn every_tag_is_its_version_with_the_usual_settings() -> Result<()> {
    let Some((client, namespace)) = place("tags").await? else { return Ok(()) };
    let pods = Api::<Pod>::namespaced(client, &namespace);
    for (name, image, version) in
        [("a", "postgres:15", "15."), ("b", "postgres:15.1", "15."), ("c", "postgres:17", "17.")]
    {
        let mut pod = database(name);
        pod["spec"]["containers"][0]["image"] = json!(image);
        pods::run(&pods, pod).await?;
        let found = ask(&pods, name, "SHOW server_version").await?;
        ensure!(found.starts_with(version), "{image} is {found}");
        let found = ask(&pods, name, "SHOW listen_addresses").await?;
        ensure!(found == "*", "{image} listens at {found}");
        let collation = "SELECT datcollate FROM pg_database WHERE datname = 'postgres'";
        ensure!(ask(&pods, name, collation).await? == "en_US.utf8", "{image}");
        let user = exec(&pods, name, &["stat", "-c", "%u %a", "/var/lib/postgresql/data/pgdata"]);
        ensure!(user.await? == "999 700", "{image}: owner and mode of the data folder");
    }
    Ok(())
}

#[tokio::test]
async fn a_first_start_without_a_password_is_refused() -> Result<()> {
    let Some((client, namespace)) = place("refused").await? else { return Ok(()) };
    let pods = Api::<Pod>::namespaced(client, &namespace);
    let both = [("POSTGRES_PASSWORD", "a"), ("POSTGRES_PASSWORD_FILE", "/b")];
    for (name, environment, complaint) in [
        ("none", &[][..], "superuser password is not specified"),
        ("both", &both[..], "both POSTGRES_PASSWORD and POSTGRES_PASSWORD_FILE are set"),
    ] {
        let mut pod = with_environment(database(name), environment);
        pod["spec"]["restartPolicy"] = json!("Never");
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        let failed = |pod: Option<&Pod>| {
            pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some("Failed")
        };
        pods::wait(&pods, name, failed).await?;
        let log = pods.logs(name, &LogParams::default()).await?;
        ensure!(log.contains(complaint), "{name}: {log}");
    }
    let trusting = [("POSTGRES_HOST_AUTH_METHOD", "trust")];
    pods::run(&pods, with_environment(database("trust"), &trusting)).await
}

/// A database with every setting: password and user from files, scripts, arguments for `initdb`.
fn with_settings(name: &str) -> Value {
    let settings = [
        ("POSTGRES_PASSWORD_FILE", "/secret/password"),
        ("POSTGRES_USER_FILE", "/secret/user"),
        ("POSTGRES_DB", "shop"),
        ("POSTGRES_INITDB_ARGS", "--data-checksums --locale='C'"),
        ("PGDATA", "/var/lib/postgresql/data/pgdata"),
    ];
    let mut pod = with_environment(database(name), &settings);
    pod["spec"]["volumes"] = json!([
        {"name": "secret", "secret": {"secretName": "login"}},
        {"name": "scripts", "configMap": {"name": "scripts"}},
    ]);
    let container = &mut pod["spec"]["containers"][0];
    container["volumeMounts"] = json!([
        {"name": "secret", "mountPath": "/secret"},
        {"name": "scripts", "mountPath": "/docker-entrypoint-initdb.d"},
    ]);
    container["args"] = json!(["-c", "work_mem=7MB"]);
    container["readinessProbe"]["exec"]["command"] =
        json!(["pg_isready", "--host=127.0.0.1", "--username=ann", "--dbname=shop"]);
    pod
}

#[tokio::test]
async fn settings_and_scripts_shape_the_first_start() -> Result<()> {
    let Some((client, namespace)) = place("settings").await? else { return Ok(()) };
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let secret =
        json!({"metadata": {"name": "login"}, "stringData": {"password": PASSWORD, "user": "ann"}});
    let secrets = Api::<Secret>::namespaced(client.clone(), &namespace);
    secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    let scripts = json!({
        "metadata": {"name": "scripts"},
        "data": {
            "1.sql": "CREATE TABLE goods AS SELECT 'tea' AS name;",
            "2.sh": "docker_process_sql <<<\"INSERT INTO goods VALUES ('$POSTGRES_USER')\"",
        },
    });
    let maps = Api::<ConfigMap>::namespaced(client, &namespace);
    maps.create(&PostParams::default(), &serde_json::from_value(scripts)?).await?;
    pods::run(&pods, with_settings("pg")).await?;

    let sql = "SELECT string_agg(name, ' ') FROM goods";
    let found = exec(&pods, "pg", &["psql", "-U", "ann", "-d", "shop", "-Atc", sql]).await?;
    ensure!(found == "tea ann", "{found}");
    for (setting, wanted) in [("data_checksums", "on"), ("work_mem", "7MB"), ("lc_messages", "C")] {
        let sql = format!("SHOW {setting}");
        let found = exec(&pods, "pg", &["psql", "-U", "ann", "-d", "shop", "-Atc", &sql]).await?;
        ensure!(found == wanted, "{setting} is {found}");
    }
    // Not 127.0.0.1, which initdb trusts.
    let login = |password: &str| {
        let words = format!(
            "psql \"host=$(hostname -i) user=ann dbname=shop password='{password}'\" -Atc 'SELECT 1'"
        );
        let pods = pods.clone();
        async move { exec(&pods, "pg", &["sh", "-c", &words]).await }
    };
    ensure!(login(PASSWORD).await? == "1", "the right password is refused");
    let wrong = login("wrong").await.expect_err("a wrong password is let in");
    ensure!(wrong.to_string().contains("password authentication failed"), "{wrong}");
    Ok(())
}

#[tokio::test]
async fn it_runs_as_any_user_and_stops_in_good_order() -> Result<()> {
    let Some((client, namespace)) = place("users").await? else { return Ok(()) };
    let pods = Api::<Pod>::namespaced(client, &namespace);
    for (name, user) in [("official", 999), ("other", 12345)] {
        let mut pod = database(name);
        pod["spec"]["securityContext"] =
            json!({"runAsUser": user, "runAsGroup": user, "fsGroup": user, "runAsNonRoot": true});
        pod["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
        pod["spec"]["containers"][0]["volumeMounts"] =
            json!([{"name": "data", "mountPath": "/var/lib/postgresql/data"}]);
        pods::run(&pods, pod).await?;
        let found =
            exec(&pods, name, &["stat", "-c", "%u", "/var/lib/postgresql/data/pgdata"]).await?;
        ensure!(found == user.to_string(), "the data belongs to {found}");
    }
    stops_in_good_order(&pods, "official").await
}

/// Reads a pod's log to its end while the pod is deleted.
async fn stops_in_good_order(pods: &Api<Pod>, name: &str) -> Result<()> {
    use futures::AsyncReadExt;
    let uid = pods.get(name).await?.metadata.uid.context("a pod's uid")?;
    let follow = LogParams { follow: true, ..LogParams::default() };
    let mut stream = Box::pin(pods.log_stream(name, &follow).await?);
    pods.delete(name, &DeleteParams::default()).await?;
    let mut log = Vec::new();
    tokio::time::timeout(pods::PATIENCE, stream.read_to_end(&mut log))
        .await
        .context("no end")??;
    let log = String::from_utf8_lossy(&log);
    ensure!(log.contains("received fast shutdown request"), "{log}");
    ensure!(log.contains("database system is shut down"), "{log}");
    pods::wait(pods, name, is_deleted(&uid)).await
}
