//! The same seed gives the same history: requests, replies, times, and what is stored at the end.

#[path = "support/determinism.rs"]
mod determinism;
#[path = "support/replicated.rs"]
mod replicated;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::watcher;
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use sim::world::World;

/// A controller over kube's own runtime: one ConfigMap a set, and an Event.
async fn reconcile(set: Arc<StatefulSet>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let namespace = set.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    let ready = set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": set.name_any() },
        "data": { "ready": ready.to_string() },
    });
    maps.patch(&set.name_any(), &PatchParams::apply("test").force(), &Patch::Apply(map)).await?;
    let reporter = Reporter { controller: "test".into(), instance: None };
    let recorder = Recorder::new((*client).clone(), reporter);
    let event = Event {
        type_: EventType::Normal,
        reason: "Seen".into(),
        note: Some(format!("{ready} ready")),
        action: "Look".into(),
        secondary: None,
    };
    recorder.publish(&event, &set.object_ref(&())).await?;
    Ok(Action::requeue(Duration::from_secs(30)))
}

fn set(name: &str, replicas: u64) -> String {
    format!(
        "apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: {name}, namespace: default}}
spec:
  serviceName: {name}
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers: [{{name: main, image: 'nginx:{replicas}'}}]
"
    )
}

/// One history: several sets come up, change and go, watched by a real controller.
async fn history(seed: u64) -> (String, u64) {
    let world = World::new(seed);
    let driver = world.spawn();
    let client = Client::new(world.cluster.service(), "default");
    let sets: Api<StatefulSet> = Api::all(client.clone());
    let pods: Api<Pod> = Api::all(client.clone());
    let controller = Controller::new(sets, watcher::Config::default())
        .owns(pods, watcher::Config::default())
        .run(
            reconcile,
            |_, _: &kube::Error, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(client),
        );
    let controller = tokio::spawn(controller.for_each(|_| async {}));
    for index in 0..5 {
        world.apply(&set(&format!("set-{index}"), 1 + index % 3)).expect("applied");
    }
    world.run_for(Duration::from_secs(20)).await;
    world.apply(&set("set-1", 3)).expect("applied");
    world.delete("StatefulSet", "default", "set-2").expect("deleted");
    world.cluster.cut_watches();
    world.run_for(Duration::from_secs(60)).await;
    controller.abort();
    driver.abort();
    (world.cluster.with(|core| core.faults.trace()), world.digest())
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let first = determinism::run(7, || history(7));
    let second = determinism::run(7, || history(7));
    let lines = first.0.lines().zip(second.0.lines());
    let different = lines.enumerate().find(|(_, (one, other))| one != other);
    assert!(different.is_none(), "first difference: {different:?}");
    assert_eq!(first.0.len(), second.0.len());
    assert_eq!(first.1, second.1, "the stores differ");
    assert!(first.0.lines().count() > 50, "the history is long enough to mean something");
}

#[test]
fn different_seeds_give_different_histories() {
    let first = determinism::run(1, || history(1));
    let second = determinism::run(2, || history(2));
    assert_ne!(first.0, second.0);
    assert_ne!(first.1, second.1);
}

/// A primary with two standbys, one of which loses its way and its data, with all three logs.
async fn replicated_history(seed: u64) -> (String, u64) {
    let world = World::new(seed);
    let driver = world.spawn();
    world.apply(&replicated::set(1, "postgres:15", "")).expect("applied");
    replicated::settled(&world, 1).await;
    replicated::prepare(&world, 3).await;
    world.apply(&replicated::set(3, "postgres:15", "")).expect("applied");
    replicated::settled(&world, 3).await;
    let [one, two] = [0, 2].map(|ordinal| replicated::address(&world, ordinal));
    world.model(|model| model.network.cut(&one, &two));
    replicated::ask(&world, 0, "CREATE ROLE meanwhile").await;
    world.run_for(Duration::from_secs(90)).await;
    let volume = replicated::volume(&world, 1);
    world.model(|model| model.volumes.clear(&volume, "pgdata"));
    world.delete("Pod", "default", "db-1").expect("deleted");
    world.model(|model| model.network.mend(&one, &two));
    world.run_for(Duration::from_secs(120)).await;
    let state = "SELECT pid, application_name, state, replay_lsn FROM pg_stat_replication";
    let mut text = replicated::ask(&world, 0, state).await;
    for ordinal in 0..3 {
        text.push_str(&replicated::log(&world, ordinal));
    }
    driver.abort();
    text.push_str(&world.cluster.with(|core| core.faults.trace()));
    (text, world.digest())
}

#[test]
fn standbys_have_the_same_history_for_the_same_seed() {
    let first = determinism::run(7, || replicated_history(7));
    let second = determinism::run(7, || replicated_history(7));
    assert_eq!(first, second);
    assert!(first.0.contains("db-1|streaming") && first.0.contains("db-2|streaming"));
    assert!(first.0.contains("terminating walreceiver due to timeout"));
    assert_ne!(first.0, determinism::run(8, || replicated_history(8)).0);
}
