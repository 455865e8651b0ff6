//! The StatefulSet controller with pods, claims and status, seen from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

use std::time::Duration;

use serde_json::Value;
use sim::builtin::pods::images::ImageRule;
use sim::world::World;

fn set(name: &str, replicas: u32, image: &str, extra: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: {name}, namespace: default}}
spec:
  serviceName: {name}
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
{extra}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - name: main
        image: {image}
        readinessProbe: {{tcpSocket: {{port: 80}}}}
        volumeMounts: [{{name: data, mountPath: /data}}]
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {{requests: {{storage: 1Gi}}}}
"
    )
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

async fn settled(world: &World, name: &str, replicas: i64) -> Value {
    let key = sim::Key::new("apps", "statefulsets", "default", name);
    let done = world
        .wait_until(Duration::from_secs(300), |store| {
            store.get(&key).is_some_and(|set| {
                let current = set["status"]["currentRevision"] == set["status"]["updateRevision"];
                current
                    && set["status"]["observedGeneration"] == set["metadata"]["generation"]
                    && number(set, "/status/readyReplicas") == replicas
                    && number(set, "/status/updatedReplicas") == replicas
                    && number(set, "/status/replicas") == replicas
            })
        })
        .await;
    let set = world.get("StatefulSet", "default", name).expect("the set is there");
    if !done {
        for kind in ["pods", "persistentvolumeclaims", "persistentvolumes", "Event"] {
            for object in world.list(kind, "") {
                println!(
                    "{kind} {} {} {} {}",
                    object["metadata"]["name"],
                    object["status"],
                    object["reason"],
                    object["message"]
                );
            }
        }
        panic!("not settled: {}", set["status"]);
    }
    set
}

#[tokio::test(start_paused = true)]
async fn a_set_comes_up_in_order_with_claims_and_counters() {
    let world = World::new(1);
    let driver = world.spawn();
    world.apply(&set("web", 3, "nginx:1", "")).expect("applied");
    let set = settled(&world, "web", 3).await;
    assert_eq!(number(&set, "/status/availableReplicas"), 3);
    assert_eq!(number(&set, "/status/currentReplicas"), 3);
    assert_eq!(number(&set, "/status/collisionCount"), 0);
    let pods = world.list("pods", "default");
    let names: Vec<&str> =
        pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["web-0", "web-1", "web-2"]);
    for pair in pods.windows(2) {
        let created =
            |pod: &Value| pod["metadata"]["creationTimestamp"].as_str().unwrap().to_owned();
        assert!(created(&pair[0]) <= created(&pair[1]));
    }
    assert_eq!(pods[1]["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"], "web-1");
    assert_eq!(pods[1]["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "1");
    assert_eq!(pods[1]["spec"]["hostname"], "web-1");
    assert_eq!(pods[1]["spec"]["subdomain"], "web");
    let claims = world.list("persistentvolumeclaims", "default");
    assert_eq!(claims.len(), 3);
    assert!(claims.iter().all(|claim| claim["status"]["phase"] == "Bound"));
    // Nothing is written any more.
    let before = world.cluster.with(|core| core.store.version());
    world.run_for(Duration::from_secs(3600)).await;
    assert_eq!(world.cluster.with(|core| core.store.version()), before);
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn an_update_goes_down_from_the_highest_ordinal() {
    let world = World::new(2);
    let driver = world.spawn();
    world.apply(&set("web", 3, "nginx:1", "")).expect("applied");
    let first = settled(&world, "web", 3).await;
    world.apply(&set("web", 3, "nginx:2", "")).expect("applied");
    let version = world.cluster.with(|core| core.store.version());
    let second = settled(&world, "web", 3).await;
    assert_ne!(first["status"]["updateRevision"], second["status"]["updateRevision"]);
    let deleted: Vec<String> = world.cluster.with(|core| {
        let changes = core.store.since(version).expect("the history is long enough");
        let pods = changes.filter(|one| one.key.plural == "pods" && one.after.is_none());
        pods.map(|one| one.key.name.clone()).collect()
    });
    assert_eq!(deleted, ["web-2", "web-1", "web-0"]);
    // Back to the first template: the old revision is used again.
    world.apply(&set("web", 3, "nginx:1", "")).expect("applied");
    let third = settled(&world, "web", 3).await;
    assert_eq!(first["status"]["updateRevision"], third["status"]["updateRevision"]);
    assert_eq!(world.list("controllerrevisions", "default").len(), 2);
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_partition_keeps_low_ordinals_on_the_old_revision() {
    let world = World::new(3);
    let driver = world.spawn();
    let strategy = "  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}";
    world.apply(&set("web", 3, "nginx:1", strategy)).expect("applied");
    settled(&world, "web", 3).await;
    world.apply(&set("web", 3, "nginx:2", strategy)).expect("applied");
    world.run_for(Duration::from_secs(120)).await;
    let set = world.get("StatefulSet", "default", "web").unwrap();
    assert_eq!(number(&set, "/status/updatedReplicas"), 1);
    assert_eq!(number(&set, "/status/currentReplicas"), 2);
    assert_eq!(number(&set, "/status/readyReplicas"), 3);
    assert_ne!(set["status"]["currentRevision"], set["status"]["updateRevision"]);
    let image = |name: &str| {
        world.get("Pod", "default", name).unwrap()["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!([image("web-0"), image("web-1"), image("web-2")], ["nginx:1", "nginx:1", "nginx:2"]);
    // A pod below the partition is re-created from the old revision.
    world.delete("Pod", "default", "web-0").expect("deleted");
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(image("web-0"), "nginx:1");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_broken_pod_of_the_old_revision_blocks_an_ordered_set() {
    let world = World::new(4);
    let driver = world.spawn();
    world.model(|model| model.images.rule("broken:", ImageRule::Missing));
    world.apply(&set("web", 1, "broken:1", "")).expect("applied");
    world.run_for(Duration::from_secs(60)).await;
    let pod = world.get("Pod", "default", "web-0").unwrap();
    let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "ImagePullBackOff", "{}", pod["status"]);
    world.apply(&set("web", 1, "nginx:1", "")).expect("applied");
    world.run_for(Duration::from_secs(600)).await;
    let set = world.get("StatefulSet", "default", "web").unwrap();
    assert_eq!(number(&set, "/status/updatedReplicas"), 0);
    assert_eq!(
        world.get("Pod", "default", "web-0").unwrap()["metadata"]["uid"],
        pod["metadata"]["uid"]
    );
    // The way out: that one pod is deleted.
    world.delete("Pod", "default", "web-0").expect("deleted");
    settled(&world, "web", 1).await;
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_parallel_set_replaces_a_broken_pod_by_itself() {
    let world = World::new(5);
    let driver = world.spawn();
    world.model(|model| model.images.rule("broken:", ImageRule::Missing));
    let parallel = "  podManagementPolicy: Parallel";
    world.apply(&set("web", 3, "broken:1", parallel)).expect("applied");
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(world.list("pods", "default").len(), 3);
    world.apply(&set("web", 3, "nginx:1", parallel)).expect("applied");
    settled(&world, "web", 3).await;
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn scaling_down_removes_the_highest_ordinal_and_keeps_its_claim() {
    let world = World::new(6);
    let driver = world.spawn();
    world.apply(&set("web", 3, "nginx:1", "")).expect("applied");
    settled(&world, "web", 3).await;
    world.apply(&set("web", 1, "nginx:1", "")).expect("applied");
    settled(&world, "web", 1).await;
    assert!(world.get("Pod", "default", "web-2").is_none());
    assert_eq!(world.list("persistentvolumeclaims", "default").len(), 3);
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn claims_follow_the_retention_policy() {
    let world = World::new(7);
    let driver = world.spawn();
    let policy =
        "  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}";
    world.apply(&set("web", 2, "nginx:1", policy)).expect("applied");
    settled(&world, "web", 2).await;
    world.apply(&set("web", 1, "nginx:1", policy)).expect("applied");
    settled(&world, "web", 1).await;
    world.run_for(Duration::from_secs(30)).await;
    assert!(world.get("PersistentVolumeClaim", "default", "data-web-1").is_none());
    assert!(world.get("PersistentVolumeClaim", "default", "data-web-0").is_some());
    world.delete("StatefulSet", "default", "web").expect("deleted");
    world.run_for(Duration::from_secs(60)).await;
    assert!(world.list("pods", "default").is_empty());
    assert!(world.list("persistentvolumeclaims", "default").is_empty());
    assert!(world.list("persistentvolumes", "").is_empty(), "reclaim policy Delete");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn an_orphaning_delete_and_a_new_set_keep_the_pods() {
    let world = World::new(8);
    let driver = world.spawn();
    world.apply(&set("web", 2, "nginx:1", "")).expect("applied");
    settled(&world, "web", 2).await;
    let uids = |world: &World| -> Vec<Value> {
        world.list("pods", "default").iter().map(|pod| pod["metadata"]["uid"].clone()).collect()
    };
    let before = uids(&world);
    let orphan = sim::DeleteOptions {
        propagation: Some(sim::Propagation::Orphan),
        ..sim::DeleteOptions::default()
    };
    world.delete_with("StatefulSet", "default", "web", orphan).expect("deleted");
    world.run_for(Duration::from_secs(5)).await;
    assert!(world.get("StatefulSet", "default", "web").is_none());
    for pod in world.list("pods", "default") {
        assert!(pod["metadata"]["ownerReferences"].is_null());
    }
    world.apply(&set("web", 2, "nginx:1", "")).expect("applied");
    settled(&world, "web", 2).await;
    assert_eq!(uids(&world), before);
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_quota_shows_up_as_failed_create_events() {
    let world = World::new(9);
    let driver = world.spawn();
    let quota = "apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: default}
spec: {hard: {pods: '1'}}
";
    world.apply(quota).expect("applied");
    world.apply(&set("web", 2, "nginx:1", "")).expect("applied");
    world.run_for(Duration::from_secs(60)).await;
    let wanted = "Create Pod web-1 in StatefulSet web failed error: pods \"web-1\" is forbidden: \
                  exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
    let events = world.events("default", "web");
    assert!(events.iter().any(|one| one.0 == "FailedCreate" && one.1 == wanted), "{events:?}");
    assert_eq!(world.get("ResourceQuota", "default", "q").unwrap()["status"]["used"]["pods"], "1");
    world.delete("ResourceQuota", "default", "q").expect("deleted");
    let done = world
        .wait_until(Duration::from_secs(2000), |store| {
            store.list("", "pods", Some("default")).count() == 2
        })
        .await;
    assert!(done, "the controller tries again");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn min_ready_seconds_delay_the_next_pod() {
    let world = World::new(10);
    let driver = world.spawn();
    world.apply(&set("web", 2, "nginx:1", "  minReadySeconds: 60")).expect("applied");
    world.run_for(Duration::from_secs(50)).await;
    assert_eq!(world.list("pods", "default").len(), 1);
    let set = world.get("StatefulSet", "default", "web").unwrap();
    assert_eq!(number(&set, "/status/readyReplicas"), 1);
    assert_eq!(number(&set, "/status/availableReplicas"), 0);
    world.run_for(Duration::from_secs(120)).await;
    let set = world.get("StatefulSet", "default", "web").unwrap();
    assert_eq!(number(&set, "/status/availableReplicas"), 2);
    driver.abort();
}
