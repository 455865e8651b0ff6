//! The StatefulSet controller with pods, claims and status, seen from outside.

use std::time::Duration;

use serde_json::Value;
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
                println!("{kind} {} {} {} {}", object["metadata"]["name"], object["status"], object["reason"], object["message"]);
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
        let created = |pod: &Value| pod["metadata"]["creationTimestamp"].as_str().unwrap().to_owned();
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
