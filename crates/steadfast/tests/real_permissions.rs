//! The operator runs under exactly the rules that `manifests` prints, and needs each of them: with
//! any one taken away, something in a Database's life does not happen.

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

/// A Database's life that touches every permission. The step that did not happen, if one did not.
async fn life(
    bench: &Bench,
    name: &str,
    rules: &[Value],
    patience: Duration,
) -> Result<(), String> {
    let operator = bench.operator(name, rules).await;
    let outcome = live_through(bench, name, patience).await;
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
    let databases = bench.databases();
    databases.delete(name, &DeleteParams::default()).await.expect("deletable");
    step(bench, name, patience, "it is gone", Value::is_null).await?;
    nothing_left(bench, name, patience).await
}

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

/// Takes a Database away that its operator could not.
async fn release(bench: &Bench, name: &str) {
    let _ = bench
        .api("", "ResourceQuota", "resourcequotas")
        .delete("pods", &DeleteParams::default())
        .await;
    let nothing = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let databases = bench.databases();
    let _ = databases.patch(name, &PatchParams::default(), &nothing).await;
    let _ = databases.delete(name, &DeleteParams::default()).await;
}
