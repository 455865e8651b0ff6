//! The operator runs under exactly the rules that `manifests` prints, and needs each of them: with
//! any one taken away, something in the life of a Database or a ZookeeperCluster does not happen.

mod real;

use std::time::Duration;

use futures::StreamExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use real::{Bench, PATIENCE, bench_on, condition, exercise, printed_rules, strict_plane};
use serde_json::{Value, json};

/// How long a step may take that must not happen. Each one happens within a few seconds when it is
/// permitted; with the rule gone it is waited for this long, and told apart from a mere delay by
/// the whole life having passed with all rules on the same bench before.
const SHORT: Duration = Duration::from_secs(45);

/// Lives at the same time, each in a namespace of its own.
const AT_ONCE: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn every_printed_rule_is_needed_and_together_they_suffice() {
    let Some(plane) = strict_plane().await else { return };
    let bench = bench_on(plane).await;
    let rules = printed_rules();
    let whole = life(&bench, "whole", &rules, PATIENCE).await;
    assert_eq!(whole, Ok(()), "with all rules\n{}", bench.describe().await);
    bench.strike().await;
    let lives = (0..rules.len()).map(|index| without(plane, index, &rules));
    let outcomes: Vec<Option<String>> =
        futures::stream::iter(lives).buffered(AT_ONCE).collect().await;
    let needless: Vec<String> = outcomes.into_iter().flatten().collect();
    assert!(needless.is_empty(), "rules that nothing needs: {needless:#?}");
    eprintln!("{} rules, each needed", rules.len());
}

/// A life without one rule: the rule, if nothing missed it.
async fn without(
    plane: &'static testbed::ControlPlane,
    index: usize,
    rules: &[Value],
) -> Option<String> {
    let bench = bench_on(plane).await;
    let mut fewer = rules.to_vec();
    let rule = fewer.remove(index);
    let name = format!("less-{index}");
    let outcome = life(&bench, &name, &fewer, SHORT).await;
    release(&bench, &name).await;
    bench.strike().await;
    match outcome {
        Ok(()) => Some(rule.to_string()),
        Err(step) => {
            eprintln!("without {}: {step}", rule["resources"]);
            None
        }
    }
}

/// Two lives that touch every permission. The step that did not happen, if one did not.
async fn life(
    bench: &Bench,
    name: &str,
    rules: &[Value],
    patience: Duration,
) -> Result<(), String> {
    let operator = bench.operator(name, rules).await;
    let outcome = match live_through(bench, name, patience).await {
        Ok(()) => form(bench, name, patience).await,
        missed => missed,
    };
    operator.stop().await;
    outcome
}

async fn live_through(bench: &Bench, name: &str, patience: Duration) -> Result<(), String> {
    let mut spec = exercise();
    spec["deletionPolicy"] = json!("Delete");
    let missing = json!("no-such-class");
    spec["storage"]["storageClass"] = missing;
    bench.apply_database(name, spec.clone()).await;
    step(bench, name, patience, "a missing storage class is named", |d| {
        reason(d) == "StorageClassNotFound"
    })
    .await?;
    quota(bench, Some(0)).await;
    spec["storage"]["storageClass"] = json!("local");
    bench.apply_database(name, spec.clone()).await;
    step(bench, name, patience, "a quota is named from the Events", |d| {
        reason(d) == "QuotaExceeded"
    })
    .await?;
    quota(bench, None).await;
    step(bench, name, patience, "it becomes Ready", real::is_ready).await?;
    spec["image"] = json!("postgres:no-such-tag");
    bench.apply_database(name, spec.clone()).await;
    step(bench, name, patience, "a bad image is named", |d| reason(d) == "ImagePullFailed").await?;
    spec["image"] = json!("postgres:15.1");
    bench.apply_database(name, spec.clone()).await;
    step(bench, name, patience, "a good image heals a stuck rollout", real::is_ready).await?;
    for replicas in [2, 1] {
        spec["replicas"] = json!(replicas);
        bench.apply_database(name, spec.clone()).await;
        let whole = |d: &Value| real::is_whole(d, replicas);
        step(bench, name, patience, "a standby comes and goes", whole).await?;
    }
    events_exist(bench, name).await?;
    let secrets = bench.api("", "Secret", "secrets");
    let lost = format!("{name}-superuser");
    secrets.delete(&lost, &DeleteParams::default()).await.expect("deletable");
    // The pods of this bench have no kubelet behind them, so the command itself gets no further.
    step(bench, name, patience, "a command may be run to let the superuser in", |d| {
        let degraded = condition(d, "Degraded");
        let message = degraded["message"].as_str().unwrap_or_default();
        message.contains("recover-superuser") && !message.contains("is forbidden")
    })
    .await?;
    let databases = bench.databases();
    databases.delete(name, &DeleteParams::default()).await.expect("deletable");
    step(bench, name, patience, "it is gone", Value::is_null).await?;
    nothing_left(bench, name, patience).await
}

/// A ZookeeperCluster, as far as it comes without its servers: its children under an account of its
/// own, its status, and the finalizer put on and taken off again.
async fn form(bench: &Bench, name: &str, patience: Duration) -> Result<(), String> {
    let clusters = bench.api_of("zookeeper.pravega.io/v1beta1", "ZookeeperCluster", CLUSTERS);
    let cluster = json!({
        "apiVersion": "zookeeper.pravega.io/v1beta1", "kind": "ZookeeperCluster",
        "metadata": {"name": format!("zk-{name}"), "namespace": bench.namespace},
        "spec": {"replicas": 1, "pod": {"serviceAccountName": format!("zk-{name}-pods")},
            "persistence": {"reclaimPolicy": "Delete"}},
    });
    let params = PatchParams::apply("kubectl").force();
    let name = &format!("zk-{name}");
    clusters.patch(name, &params, &Patch::Apply(cluster)).await.expect("accepted");
    let began = std::time::Instant::now();
    loop {
        let found = clusters.get_opt(name).await.expect("readable");
        let phase = found.map(|found| found.data["status"]["phase"].clone()).unwrap_or_default();
        if phase == "Deploying" {
            break;
        }
        if began.elapsed() > patience {
            return Err(format!("not seen: the children of a ZookeeperCluster; phase {phase}"));
        }
        tokio::time::sleep(Duration::from_millis(200)).await; // poll: its status
    }
    clusters.delete(name, &DeleteParams::default()).await.expect("deletable");
    let began = std::time::Instant::now();
    while clusters.get_opt(name).await.expect("readable").is_some() {
        if began.elapsed() > patience {
            return Err("not seen: the ZookeeperCluster is gone".to_owned());
        }
        tokio::time::sleep(Duration::from_millis(200)).await; // poll: its finalizer
    }
    Ok(())
}

/// The plural of the kind.
const CLUSTERS: &str = "zookeeperclusters";

fn reason(database: &Value) -> String {
    condition(database, "Ready")["reason"].as_str().unwrap_or_default().to_owned()
}

async fn step(
    bench: &Bench,
    name: &str,
    patience: Duration,
    what: &str,
    holds: impl Fn(&Value) -> bool,
) -> Result<(), String> {
    bench.until(name, patience, holds).await.map(|_| ()).map_err(|last| {
        let ready = condition(&last, "Ready");
        format!("not seen: {what}; {}: {}", ready["reason"], ready["message"])
    })
}

/// Sets, or removes, a quota on pods.
async fn quota(bench: &Bench, pods: Option<u32>) {
    let api = bench.api("", "ResourceQuota", "resourcequotas");
    match pods {
        Some(pods) => {
            let object = json!({"apiVersion": "v1", "kind": "ResourceQuota",
                "metadata": {"name": "pods"}, "spec": {"hard": {"pods": pods.to_string()}}});
            let params = PatchParams::apply("kubectl").force();
            api.patch("pods", &params, &Patch::Apply(object)).await.expect("a quota");
            // The quota counts only once its controller has seen it.
            let began = std::time::Instant::now();
            while api.get("pods").await.expect("there").data["status"]["hard"].is_null() {
                assert!(began.elapsed() < PATIENCE, "the quota is never counted");
                tokio::time::sleep(Duration::from_millis(100)).await; // poll: its status
            }
        }
        None => {
            api.delete("pods", &DeleteParams::default()).await.expect("deletable");
        }
    }
}

async fn events_exist(bench: &Bench, name: &str) -> Result<(), String> {
    let params = ListParams::default().fields(&format!("involvedObject.name={name}"));
    let events = bench.api("", "Event", "events").list(&params).await.expect("readable");
    let ours = events.items.iter().any(|e| e.data["reason"] == "PhaseChanged");
    if ours { Ok(()) } else { Err("not seen: Events about the phases".to_owned()) }
}

/// `deletionPolicy: Delete` leaves neither volume nor Secret.
async fn nothing_left(bench: &Bench, name: &str, patience: Duration) -> Result<(), String> {
    let began = std::time::Instant::now();
    loop {
        let mut left = Vec::new();
        for (group, kind, plural) in [
            ("", "Secret", "secrets"),
            ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
            ("apps", "StatefulSet", "statefulsets"),
        ] {
            let params =
                ListParams::default().labels(&format!("app.kubernetes.io/instance={name}"));
            let found = bench.api(group, kind, plural).list(&params).await.expect("readable");
            left.extend(found.items.iter().filter_map(|o| o.metadata.name.clone()));
        }
        if left.is_empty() {
            return Ok(());
        }
        if began.elapsed() > patience {
            return Err(format!("still there after the delete: {left:?}"));
        }
        tokio::time::sleep(Duration::from_millis(200)).await; // poll: the collector
    }
}

/// Takes away what its operator could not.
async fn release(bench: &Bench, name: &str) {
    let _ = bench
        .api("", "ResourceQuota", "resourcequotas")
        .delete("pods", &DeleteParams::default())
        .await;
    let nothing = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let clusters = bench.api_of("zookeeper.pravega.io/v1beta1", "ZookeeperCluster", CLUSTERS);
    for (api, name) in [(bench.databases(), name.to_owned()), (clusters, format!("zk-{name}"))] {
        let _ = api.patch(&name, &PatchParams::default(), &nothing).await;
        let _ = api.delete(&name, &DeleteParams::default()).await;
    }
}
