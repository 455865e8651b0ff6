//! The life of pods beyond one server: init containers, scripts that call the image's entry point,
//! standbys found by name, hooks, restarts by probe, and the rules of placement.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

mod bench;

use bench::{ask, bench, container_status, is_ready, postgres_pod, waiting};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_seeded_by_its_init_container_and_streams() {
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": "right"})).await;
    let headless = "db.$(NAMESPACE).svc.cluster.local";
    let namespace = json!({"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}});
    let mut primary = postgres_pod("db-0");
    primary["spec"]["subdomain"] = json!("db");
    primary["spec"]["hostname"] = json!("db-0");
    primary["spec"]["containers"][0]["args"] = json!(["-c", "wal_level=replica"]);
    let mut standby = postgres_pod("db-1");
    standby["spec"]["subdomain"] = json!("db");
    standby["spec"]["hostname"] = json!("db-1");
    let password = standby["spec"]["containers"][0]["env"][0]["valueFrom"].clone();
    let seed = "until pg_basebackup -h $PRIMARY -U postgres -D \"$PGDATA\" -R -X stream; do sleep 0.2; done; \
        chmod 0700 \"$PGDATA\"; echo seeded >/dev/termination-log";
    standby["spec"]["initContainers"] = json!([{
        "name": "seed", "image": "postgres:17", "command": ["sh", "-c", seed],
        "env": [namespace, {"name": "PRIMARY", "value": format!("db-0.{headless}")},
            {"name": "PGDATA", "value": "/var/lib/postgresql/data/pgdata"},
            {"name": "PGPASSWORD", "valueFrom": password}],
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql/data"}]}]);
    standby["spec"]["containers"][0]["command"] = json!([
        "bash",
        "-c",
        "test -f \"$PGDATA/standby.signal\" && exec docker-entrypoint.sh postgres -c hot_standby=on"
    ]);
    // The standby comes first: its primary's address holds before the primary is there.
    bench.create_pod(standby).await;
    bench
        .until("db-1", "its init container running", |pod| {
            container_status(pod, "seed")
                .is_some_and(|s| s.state.is_some_and(|s| s.running.is_some()))
        })
        .await;
    let mut scripts = primary;
    scripts["spec"]["containers"][0]["volumeMounts"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "scripts", "mountPath": "/docker-entrypoint-initdb.d"}));
    scripts["spec"]["volumes"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "scripts", "configMap": {"name": "scripts", "defaultMode": 0o755}}));
    let allow =
        "#!/bin/sh\necho 'host replication all all scram-sha-256' >>\"$PGDATA/pg_hba.conf\"\n";
    bench.create_config_map("scripts", json!({"allow.sh": allow})).await;
    bench.create_pod(scripts).await;
    let primary = bench.until_ready("db-0").await;
    let standby = bench.until_ready("db-1").await;
    let login = "user=postgres password=right";
    assert_eq!(
        ask(&standby, login, "SELECT pg_is_in_recovery()::text").await.as_deref(),
        Ok("true")
    );
    let streaming = "SELECT string_agg(state, ',') FROM pg_stat_replication";
    assert_eq!(ask(&primary, login, streaming).await.as_deref(), Ok("streaming"));
    let seeded = container_status(&standby, "seed")
        .and_then(|s| s.state?.terminated)
        .expect("the init container ended");
    assert_eq!((seeded.exit_code, seeded.message.as_deref()), (0, Some("seeded\n")));
    assert_eq!(seeded.reason.as_deref(), Some("Completed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_init_container_holds_the_pod_back_with_its_words() {
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": "right"})).await;
    let mut pod = postgres_pod("db");
    pod["spec"]["initContainers"] = json!([{"name": "check", "image": "postgres:17",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "command": ["sh", "-c", "echo the volume is stale >&2; exit 7"]}]);
    bench.create_pod(pod).await;
    let held = |pod: &Pod| {
        let last = container_status(pod, "check").and_then(|s| s.last_state?.terminated);
        last.is_some_and(|t| {
            t.exit_code == 7 && t.message.as_deref() == Some("the volume is stale\n")
        }) && waiting(pod, "check").is_some_and(|(reason, _)| reason == "CrashLoopBackOff")
            && waiting(pod, "postgres").is_some_and(|(reason, _)| reason == "PodInitializing")
    };
    let pod = bench.until("db", "held back by its init container", held).await;
    let conditions = pod.status.and_then(|status| status.conditions).expect("conditions");
    let open = conditions.iter().find(|c| c.type_ == "Initialized").expect("Initialized");
    assert_eq!(open.message.as_deref(), Some("containers with incomplete status: [check]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_liveness_probe_restarts_and_a_missing_program_is_a_start_error() {
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": "right"})).await;
    let mut pod = postgres_pod("db");
    pod["spec"]["containers"][0]["livenessProbe"] = json!({"exec": {"command": ["test", "!", "-e", "/tmp/broken"]}, "periodSeconds": 1, "failureThreshold": 1});
    bench.create_pod(pod).await;
    bench.until_ready("db").await;
    let target = (bench.namespace.as_str(), "db", "postgres");
    let node = bench.node.as_ref().expect("the node runs");
    let touch = ["touch", "/tmp/broken"].map(str::to_owned);
    assert_eq!(node.exec(target, &touch, bench::PATIENCE).await, Ok((0, String::new())));
    let restarted = |pod: &Pod| {
        is_ready(pod) && container_status(pod, "postgres").is_some_and(|s| s.restart_count == 1)
    };
    bench.until("db", "restarted and Ready", restarted).await;
    bench.until_event("Container postgres failed liveness probe, will be restarted").await;

    let mut pod = postgres_pod("typo");
    pod["spec"]["containers"][0]["command"] = json!(["postgress"]);
    bench.create_pod(pod).await;
    let refused = |pod: &Pod| {
        let last = container_status(pod, "postgres").and_then(|s| s.last_state?.terminated);
        last.is_some_and(|t| {
            t.reason.as_deref() == Some("StartError")
                && t.exit_code == 128
                && t.message.unwrap_or_default().contains("postgress")
        })
    };
    bench.until("typo", "StartError", refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_wait_for_their_claims_and_for_missing_volumes() {
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": "right"})).await;
    let mut pod = postgres_pod("db");
    pod["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    bench.create_pod(pod).await;
    let unplaced = |pod: &Pod| {
        let conditions =
            pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        conditions.iter().any(|c| {
            c.type_ == "PodScheduled"
                && c.reason.as_deref() == Some("Unschedulable")
                && c.message
                    .as_deref()
                    .unwrap_or_default()
                    .contains("persistentvolumeclaim \"data\" not found")
        })
    };
    bench.until("db", "unschedulable for want of its claim", unplaced).await;
    bench.create_claim("data").await;
    bench.until_ready("db").await;

    let mut pod = postgres_pod("unmounted");
    pod["spec"]["volumes"] = json!([{"name": "data", "configMap": {"name": "absent"}}]);
    bench.create_pod(pod).await;
    bench
        .until_event(
            "MountVolume.SetUp failed for volume \"data\" : configmap \"absent\" not found",
        )
        .await;
    let creating = |pod: &Pod| {
        waiting(pod, "postgres").is_some_and(|(reason, _)| reason == "ContainerCreating")
    };
    bench.until("unmounted", "waiting for its volume", creating).await;
    bench.delete_pod("unmounted").await;
    bench.until_gone("unmounted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_holds_what_the_template_says_and_no_secret_of_ours() {
    let Some(bench) = bench().await else { return };
    let script = "env >/dev/termination-log; id -u >>/dev/termination-log";
    let pod = json!({"metadata": {"name": "look"}, "spec": {"restartPolicy": "Never", "containers": [{
        "name": "postgres", "image": "postgres:17", "command": ["sh", "-c", script],
        "env": [{"name": "GREETING", "value": "hello $(NAME)"}, {"name": "NAME", "value": "x"},
            {"name": "AGAIN", "value": "$(NAME) at /tmp/y"}]}]}});
    bench.create_pod(pod).await;
    let done = bench
        .until("look", "Succeeded", |pod| {
            pod.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Succeeded")
        })
        .await;
    let ended =
        container_status(&done, "postgres").and_then(|s| s.state?.terminated).expect("terminated");
    let text = ended.message.expect("a message");
    let names: std::collections::BTreeSet<&str> =
        text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    let expected: std::collections::BTreeSet<&str> = [
        "AGAIN", "GREETING", "HOME", "HOSTNAME", "LANG", "LC_ALL", "NAME", "PATH", "PGDATA",
        "PGHOST", "PG_MAJOR", "USER",
    ]
    .into();
    let beyond: Vec<_> = names.difference(&expected).filter(|name| !shell.contains(name)).collect();
    assert!(beyond.is_empty(), "{beyond:?}");
    assert!(expected.is_subset(&names), "{names:?}");
    assert!(text.contains("GREETING=hello $(NAME)\n"), "{text}");
    assert!(text.contains(&format!("AGAIN=x at {}", bench.state_dir.display())), "{text}");
    if nix::unistd::Uid::effective().is_root() {
        assert_ne!(text.lines().last(), Some("0"), "containers never run as root");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_made_grown_and_removed_for_claims_of_the_nodes_own_class() {
    use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
    use k8s_openapi::api::storage::v1::StorageClass;
    use kube::Api;
    use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": "right"})).await;
    let class: StorageClass = serde_json::from_value(json!({"metadata": {"name": bench.namespace},
        "provisioner": localnode::PROVISIONER, "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true}))
    .expect("a class");
    Api::all(bench.client.clone()).create(&PostParams::default(), &class).await.expect("accepted");
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(bench.client.clone(), &bench.namespace);
    let claim = serde_json::from_value(json!({"metadata": {"name": "data"}, "spec": {
        "storageClassName": bench.namespace, "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}}))
    .expect("a claim");
    claims.create(&PostParams::default(), &claim).await.expect("accepted");
    let mut pod = postgres_pod("db");
    pod["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    bench.create_pod(pod).await;
    bench.until_ready("db").await;
    let more = Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}));
    claims.patch("data", &PatchParams::default(), &more).await.expect("the class allows it");
    bench::wait_for("the claim's new size", async || {
        let claim = claims.get("data").await.expect("there");
        claim.status.and_then(|s| s.capacity).is_some_and(|c| c["storage"].0 == "2Gi")
    })
    .await;
    let volume =
        claims.get("data").await.expect("there").spec.and_then(|s| s.volume_name).expect("bound");
    bench.delete_pod("db").await;
    bench.until_gone("db").await;
    claims.delete("data", &DeleteParams::default()).await.expect("accepted");
    let volumes: Api<PersistentVolume> = Api::all(bench.client.clone());
    bench::wait_for("the volume removed", async || {
        volumes.get_opt(&volume).await.expect("readable").is_none()
    })
    .await;
    let folders = bench.state_dir.join("c");
    bench::wait_for("its folder removed", async || {
        std::fs::read_dir(&folders).is_ok_and(|entries| entries.count() == 0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_steady_pod_costs_no_write() {
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": "right"})).await;
    let mut pod = postgres_pod("db");
    pod["spec"]["containers"][0]["readinessProbe"]["exec"]["command"] =
        json!(["sh", "-c", "echo . >>/tmp/tries; pg_isready -U postgres"]);
    bench.create_pod(pod).await;
    bench.until_ready("db").await;
    let node = bench.node.as_ref().expect("the node runs");
    let target = (bench.namespace.as_str(), "db", "postgres");
    let count = ["sh", "-c", "wc -l </tmp/tries"].map(str::to_owned);
    let tries = async || -> u32 {
        let (_, output) = node.exec(target, &count, bench::PATIENCE).await.expect("exec works");
        output.trim().parse().expect("a number")
    };
    let version = async || bench.pods().get("db").await.expect("there").metadata.resource_version;
    let (first, before) = (tries().await, version().await);
    bench::wait_for("four more probes", async || tries().await >= first + 4).await;
    assert_eq!(version().await, before, "nothing was written about a pod that did not change");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_may_come_from_a_projected_file_but_not_twice() {
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": "from file"})).await;
    let mut pod = postgres_pod("db");
    pod["spec"]["volumes"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "all", "projected": {"sources": [
            {"secret": {"name": "credentials", "items": [{"key": "password", "path": "deep/password"}]}},
            {"downwardAPI": {"items": [{"path": "app", "fieldRef": {"fieldPath": "metadata.labels['app']"}}]}}]}}));
    let container = &mut pod["spec"]["containers"][0];
    let file = json!({"name": "POSTGRES_PASSWORD_FILE", "value": "/etc/all/deep/password"});
    container["volumeMounts"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "all", "mountPath": "/etc/all"}));
    let mut twice = pod.clone();
    twice["metadata"]["name"] = json!("twice");
    twice["spec"]["containers"][0]["env"].as_array_mut().expect("a list").push(file.clone());
    let container = &mut pod["spec"]["containers"][0];
    container["env"][0] = file;
    container["livenessProbe"] = json!({"httpGet": {"port": "postgres", "path": "/healthz"},
        "failureThreshold": 1000, "periodSeconds": 1});
    bench.create_pod(pod).await;
    bench.create_pod(twice).await;
    let running = bench.until_ready("db").await;
    let login = "user=postgres password='from file'";
    assert_eq!(ask(&running, login, "SELECT 'in'::text").await.as_deref(), Ok("in"));
    bench.until_event("Liveness probe failed: HTTP probe failed: the answer is not HTTP").await;
    let node = bench.node.as_ref().expect("the node runs");
    let look =
        ["sh", "-c", "cat /etc/all/app; stat -L -c %a /etc/all/deep/password"].map(str::to_owned);
    let target = (bench.namespace.as_str(), "db", "postgres");
    assert_eq!(node.exec(target, &look, bench::PATIENCE).await, Ok((0, "db400\n".to_owned())));
    let refused = |pod: &Pod| {
        let last = container_status(pod, "postgres").and_then(|s| s.last_state?.terminated);
        last.is_some_and(|t| t.message.unwrap_or_default().contains("are set (but are exclusive)"))
    };
    bench.until("twice", "refused for two passwords", refused).await;
}
