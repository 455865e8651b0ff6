//! A real node runs pods: probes, commands, port-forward, names, Services, volumes.

#[path = "pods/asking.rs"]
mod asking;
mod pods;

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use asking::{idler, query};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions::is_deleted};
use kube::{Api, ResourceExt};
use pods::{PATIENCE, database, exec};
use serde_json::{Value, json};
use testbed::binaries::KUBERNETES_VERSION;
use testbed::images::{PAUSE, POSTGRES_15, Recipe};
use testbed::node::{CONTAINERD_VERSION, STORAGE_CLASS};
use testbed::{Cluster, node};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The shared cluster with PostgreSQL, and a namespace of the test's own; none if the test is to be skipped.
async fn place(prefix: &str) -> Result<Option<(&'static Cluster, String)>> {
    if !node::require_or_skip(&[POSTGRES_15])? {
        return Ok(None);
    }
    let cluster = Cluster::shared().await?;
    cluster.load(&POSTGRES_15).await?;
    let namespace = cluster.plane().create_namespace(prefix).await?;
    Ok(Some((cluster, namespace)))
}

fn headless(name: &str, address: Option<&str>) -> Result<Service> {
    let service = json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"app": name},
            "clusterIP": address,
            "ports": [{"name": "postgres", "port": 5432}],
        },
    });
    Ok(serde_json::from_value(service)?)
}

#[tokio::test]
async fn the_node_is_ready_and_of_the_pinned_versions() -> Result<()> {
    let Some((cluster, _)) = place("versions").await? else { return Ok(()) };
    let nodes =
        Api::<Node>::all(cluster.plane().client().await?).list(&ListParams::default()).await?;
    let names: Vec<_> = nodes.iter().map(ResourceExt::name_any).collect();
    ensure!(names == cluster.nodes(), "{names:?}");
    for node in nodes {
        let info = node.status.and_then(|status| status.node_info).context("the node tells")?;
        ensure!(info.kubelet_version == KUBERNETES_VERSION, "{info:?}");
        let runtime = format!("containerd://{}", CONTAINERD_VERSION.trim_start_matches('v'));
        ensure!(info.container_runtime_version == runtime, "{info:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_pod_passes_its_probe_and_serves_who_asks() -> Result<()> {
    let Some((cluster, namespace)) = place("pod").await? else { return Ok(()) };
    let pods = Api::<Pod>::namespaced(cluster.plane().client().await?, &namespace);
    pods::run(&pods, database("pg")).await?;
    let version =
        exec(&pods, "pg", &["psql", "-U", "postgres", "-Atc", "SHOW server_version"]).await?;
    ensure!(version.starts_with("15."), "{version}");
    let failed = exec(&pods, "pg", &["sh", "-c", "echo no >&2; exit 3"]).await;
    ensure!(failed.is_err_and(|error| error.to_string().contains("no")), "a failure passed");
    let log = pods.logs("pg", &kube::api::LogParams::default()).await?;
    ensure!(log.contains("PostgreSQL init process complete"), "{log}");

    let mut forward = pods.portforward("pg", &[5432]).await?;
    let mut stream = forward.take_stream(5432).context("a stream was asked for")?;
    // The protocol's question whether the server speaks TLS: length 8, code 80877103.
    stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).await?;
    let mut answer = [0];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer)).await.context("no answer")??;
    ensure!(answer == *b"N", "PostgreSQL without TLS says N, not {answer:?}");
    Ok(())
}

#[tokio::test]
async fn kubectl_reaches_a_pod() -> Result<()> {
    let Some((cluster, namespace)) = place("kubectl").await? else { return Ok(()) };
    let pods = Api::<Pod>::namespaced(cluster.plane().client().await?, &namespace);
    pods::run(&pods, database("pg")).await?;
    let program = cluster.plane().binaries().kubectl.clone().context("kubectl is built")?;
    let kubectl = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--kubeconfig").arg(cluster.plane().kubeconfig_path());
        command.args(["--namespace", &namespace]).args(arguments).stdin(Stdio::null());
        command
    };
    let output = kubectl(&["exec", "pg", "--", "id", "-un"]).output()?;
    ensure!(output.stdout == b"root\n", "{output:?}");
    let mut forward =
        kubectl(&["port-forward", "pod/pg", ":5432"]).stdout(Stdio::piped()).spawn()?;
    let asked = ask_through(&mut forward);
    forward.kill()?;
    forward.wait()?;
    asked
}

/// Reads the local port that `kubectl port-forward` chose, and asks the server there whether it speaks TLS.
fn ask_through(forward: &mut std::process::Child) -> Result<()> {
    use std::io::{BufRead, BufReader, Read, Write};
    let output = forward.stdout.take().context("a pipe was asked for")?;
    // Kept open to the end: port-forward writes to it with every connection.
    let mut lines = BufReader::new(output).lines();
    let line = lines.next().context("port-forward says its port")??;
    let port = line.split([':', ' ']).find_map(|word| word.parse::<u16>().ok());
    let port = port.with_context(|| line.clone())?;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47])?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    drop(lines);
    ensure!(answer == *b"N", "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn a_pod_finds_another_by_name_and_through_its_service() -> Result<()> {
    let Some((cluster, namespace)) = place("names").await? else { return Ok(()) };
    let client = cluster.plane().client().await?;
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let services = Api::<Service>::namespaced(client, &namespace);
    let service = services.create(&PostParams::default(), &headless("pg", None)?).await?;
    tokio::try_join!(pods::run(&pods, database("pg")), pods::run(&pods, idler("asker")))?;

    let address = service.spec.and_then(|spec| spec.cluster_ip).context("the Service's address")?;
    let full = format!("pg.{namespace}.svc.cluster.local");
    for host in ["pg", full.as_str(), address.as_str()] {
        let answer = query(&pods, "asker", host, "SELECT 40 + 2").await?;
        ensure!(answer == "42", "{host}: {answer}");
    }
    let itself = query(&pods, "pg", &address, "SELECT 40 + 2").await?;
    ensure!(itself == "42", "a pod through its own Service: {itself}");
    let found = exec(&pods, "asker", &["getent", "hosts", "pg"]).await?;
    ensure!(found.starts_with(&address) && found.contains(&full), "{found}");
    let stranger = exec(&pods, "asker", &["getent", "hosts", "steadfast.example"]).await;
    ensure!(stranger.is_err(), "a name outside the cluster was found");
    Ok(())
}

fn stateful_set(claims: Value) -> Result<StatefulSet> {
    let mut template = database("pg");
    template["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/var/lib/postgresql/data"}]);
    let set = json!({
        "metadata": {"name": "pg"},
        "spec": {
            "serviceName": "pg",
            "replicas": 2,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "pg"}},
            "template": {"metadata": {"labels": {"app": "pg"}}, "spec": template["spec"]},
            "volumeClaimTemplates": claims,
        },
    });
    Ok(serde_json::from_value(set)?)
}

fn claims(size: &str) -> Value {
    json!([{
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    }])
}

#[tokio::test]
async fn pods_of_a_stateful_set_find_each_other_and_keep_their_volumes() -> Result<()> {
    let Some((cluster, namespace)) = place("set").await? else { return Ok(()) };
    let client = cluster.plane().client().await?;
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let services = Api::<Service>::namespaced(client.clone(), &namespace);
    services.create(&PostParams::default(), &headless("pg", Some("None"))?).await?;
    let sets = Api::<StatefulSet>::namespaced(client.clone(), &namespace);
    sets.create(&PostParams::default(), &stateful_set(claims("1Gi"))?).await?;
    let ready = |pod: Option<&Pod>| pod.is_some_and(pods::is_ready);
    pods::wait(&pods, "pg-0", ready).await?;
    pods::wait(&pods, "pg-1", ready).await?;

    for (asker, other) in [("pg-0", "pg-1.pg"), ("pg-1", "pg-0.pg")] {
        let answer = query(&pods, asker, other, "SELECT 40 + 2").await?;
        ensure!(answer == "42", "{asker} asked {other}: {answer}");
    }
    query(&pods, "pg-1", "pg-0.pg", "CREATE TABLE kept AS SELECT 7 AS number").await?;

    let old = pods.get("pg-0").await?.uid();
    pods.delete("pg-0", &DeleteParams::default()).await?;
    let another =
        move |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != old && pods::is_ready(pod));
    pods::wait(&pods, "pg-0", another).await?;
    let kept = query(&pods, "pg-1", "pg-0.pg", "SELECT number FROM kept").await?;
    ensure!(kept == "7", "{kept}");
    Ok(())
}

/// A volume has the room that its claim asks for, less what the file system needs itself.
async fn assert_room(pods: &Api<Pod>, gibibytes: u64) -> Result<()> {
    if !node::enforces_sizes() {
        return Ok(());
    }
    let said = exec(pods, "writer", &["df", "--output=avail", "-B1", "/data"]).await?;
    let room: u64 = said.lines().last().context("a number")?.trim().parse()?;
    let asked = gibibytes << 30;
    ensure!((asked / 100 * 95..=asked).contains(&room), "{room} bytes of {gibibytes} GiB");
    Ok(())
}

#[tokio::test]
async fn a_volume_grows_and_goes_with_its_claim() -> Result<()> {
    let Some((cluster, namespace)) = place("volume").await? else { return Ok(()) };
    let client = cluster.plane().client().await?;
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), &namespace);
    let volumes = Api::<PersistentVolume>::all(client);
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    claims.create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
    let mut pod = idler("writer");
    pod["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    pods::run(&pods, pod).await?;
    exec(&pods, "writer", &["sh", "-c", "echo kept >/data/file"]).await?;
    let bound = claims.get("data").await?.spec.context("a claim's spec")?;
    ensure!(bound.storage_class_name.as_deref() == Some(STORAGE_CLASS), "{bound:?}");
    let name = bound.volume_name.context("a bound claim names its volume")?;
    let file = cluster.folder().join("volumes").join(&name).join("file");
    ensure!(std::fs::read_to_string(&file)? == "kept\n", "{} differs", file.display());

    assert_room(&pods, 1).await?;
    let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    claims.patch("data", &PatchParams::default(), &Patch::Merge(larger)).await?;
    let grown = |claim: Option<&PersistentVolumeClaim>| {
        let capacity =
            claim.and_then(|claim| claim.status.as_ref()?.capacity.as_ref()?.get("storage"));
        capacity.is_some_and(|size| size.0 == "2Gi")
    };
    let change = await_condition(claims.clone(), "data", grown);
    tokio::time::timeout(PATIENCE, change).await.context("the claim has not grown")??;
    assert_room(&pods, 2).await?;

    pods.delete("writer", &DeleteParams::default()).await?;
    claims.delete("data", &DeleteParams::default()).await?;
    let uid = volumes.get(&name).await?.uid().context("a volume's uid")?;
    let change = await_condition(volumes, &name, is_deleted(&uid));
    tokio::time::timeout(PATIENCE, change).await.context("the volume is still there")??;
    ensure!(!file.exists(), "the volume's folder is still there");
    Ok(())
}

#[tokio::test]
async fn an_image_of_a_tests_own_is_loaded() -> Result<()> {
    let Some((cluster, namespace)) = place("own").await? else { return Ok(()) };
    let own = Recipe { names: &["steadfast.dev/own:1"], ..PAUSE };
    own.ensure()?;
    cluster.load(&own).await?;
    let pods = Api::<Pod>::namespaced(cluster.plane().client().await?, &namespace);
    let pod = json!({
        "metadata": {"name": "own"},
        "spec": {"containers": [{"name": "own", "image": "steadfast.dev/own:1"}]},
    });
    pods::run(&pods, pod).await
}

#[tokio::test]
async fn a_container_that_fails_its_liveness_probe_is_started_again() -> Result<()> {
    let Some((cluster, namespace)) = place("liveness").await? else { return Ok(()) };
    let pods = Api::<Pod>::namespaced(cluster.plane().client().await?, &namespace);
    let mut pod = idler("sick");
    pod["spec"]["containers"][0]["livenessProbe"] = json!({
        "exec": {"command": ["test", "!", "-e", "/sick"]}, "periodSeconds": 1, "failureThreshold": 1,
    });
    pods::run(&pods, pod).await?;
    exec(&pods, "sick", &["touch", "/sick"]).await?;
    let restarted = |pod: Option<&Pod>| {
        let statuses = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref());
        statuses.is_some_and(|found| found.iter().any(|container| container.restart_count > 0))
    };
    pods::wait(&pods, "sick", restarted).await
}
