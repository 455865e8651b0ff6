//! Claims, garbage, namespaces and budgets, seen from outside.

use std::time::Duration;

use serde_json::Value;
use sim::world::World;
use sim::{DeleteOptions, Propagation};

fn claim(name: &str, class: &str, size: &str) -> String {
    let class = match class {
        "" => String::new(),
        class => format!("  storageClassName: {class}\n"),
    };
    format!(
        "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, namespace: default}}
spec:
{class}  accessModes: [ReadWriteOnce]
  resources: {{requests: {{storage: {size}}}}}
"
    )
}

fn class(name: &str, growth: bool) -> String {
    format!(
        "apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {name}}}
provisioner: disk.example.com
volumeBindingMode: Immediate
allowVolumeExpansion: {growth}
"
    )
}

fn get(world: &World, kind: &str, name: &str) -> Option<Value> {
    world.get(kind, "default", name)
}

#[tokio::test(start_paused = true)]
async fn claims_bind_wait_or_complain() {
    let world = World::new(1);
    let driver = world.spawn();
    world.apply(&class("fast", true)).unwrap();
    world.apply(&class("broken", true)).unwrap();
    world.model(|model| model.provisioning.insert("broken".into(), "disk full".into()));
    for (name, class) in [("a", "fast"), ("b", "nope"), ("c", ""), ("d", "broken")] {
        world.apply(&claim(name, class, "1Gi")).unwrap();
    }
    world.run_for(Duration::from_secs(60)).await;
    let cases = [
        ("a", "Bound", "ProvisioningSucceeded", "Successfully provisioned volume pvc-"),
        ("b", "Pending", "ProvisioningFailed", "storageclass.storage.k8s.io \"nope\" not found"),
        ("c", "Pending", "WaitForFirstConsumer", "waiting for first consumer to be created"),
        (
            "d",
            "Pending",
            "ProvisioningFailed",
            "failed to provision volume with StorageClass \"broken\": disk full",
        ),
    ];
    for (name, phase, reason, message) in cases {
        let found = get(&world, "PersistentVolumeClaim", name).unwrap();
        assert_eq!(found["status"]["phase"], phase, "{name}");
        let events = world.events("default", name);
        let told = events.iter().any(|one| one.0 == reason && one.1.starts_with(message));
        assert!(told, "{name}: {events:?}");
    }
    assert_eq!(
        get(&world, "PersistentVolumeClaim", "c").unwrap()["spec"]["storageClassName"],
        "standard"
    );
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn claims_grow_where_the_class_allows_it() {
    let world = World::new(2);
    let driver = world.spawn();
    world.apply(&class("grows", true)).unwrap();
    world.apply(&class("fixed", false)).unwrap();
    world.apply(&claim("a", "grows", "1Gi")).unwrap();
    world.apply(&claim("b", "fixed", "1Gi")).unwrap();
    world.run_for(Duration::from_secs(20)).await;
    world.apply(&claim("a", "grows", "2Gi")).unwrap();
    let refused = world.apply(&claim("b", "fixed", "2Gi")).expect_err("the class forbids it");
    assert_eq!(refused.code, 403);
    assert!(refused.message.contains("must support resize"), "{}", refused.message);
    let status = || get(&world, "PersistentVolumeClaim", "a").unwrap()["status"].clone();
    world.run_for(Duration::from_millis(100)).await;
    assert_eq!(status()["conditions"][0]["type"], "Resizing");
    assert_eq!(status()["allocatedResourceStatuses"]["storage"], "ControllerResizeInProgress");
    world.run_for(Duration::from_secs(20)).await;
    assert_eq!(status()["conditions"][0]["type"], "FileSystemResizePending");
    assert_eq!(status()["capacity"]["storage"], "1Gi", "no pod mounts it");
    world.apply(USER).unwrap();
    world.run_for(Duration::from_secs(20)).await;
    assert_eq!(status()["capacity"]["storage"], "2Gi");
    assert!(status()["conditions"].is_null() && status()["allocatedResourceStatuses"].is_null());
    let reasons: Vec<String> =
        world.events("default", "a").into_iter().map(|event| event.0).collect();
    for reason in ["Resizing", "FileSystemResizeRequired", "FileSystemResizeSuccessful"] {
        assert!(reasons.iter().any(|one| one == reason), "{reason}: {reasons:?}");
    }
    driver.abort();
}

/// A pod that mounts the claim.
const USER: &str = "apiVersion: v1
kind: Pod
metadata: {name: user, namespace: default}
spec:
  containers: [{name: main, image: 'nginx:1', volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: a}}]
";

#[tokio::test(start_paused = true)]
async fn a_resizer_that_fails_says_so_until_it_succeeds() {
    let world = World::new(2);
    let driver = world.spawn();
    world.apply(&class("grows", true)).unwrap();
    world.apply(&claim("a", "grows", "1Gi")).unwrap();
    world.apply(USER).unwrap();
    world.run_for(Duration::from_secs(20)).await;
    world.model(|model| model.resizing.insert("grows".into(), "quota exceeded".into()));
    world.apply(&claim("a", "grows", "2Gi")).unwrap();
    world.run_for(Duration::from_secs(60)).await;
    let status = || get(&world, "PersistentVolumeClaim", "a").unwrap()["status"].clone();
    let conditions = status()["conditions"].clone();
    let failed = conditions.as_array().unwrap().iter().any(|one| {
        let message = one["message"].as_str().unwrap_or("");
        one["type"] == "ControllerResizeError" && message.ends_with("failed: quota exceeded")
    });
    assert!(failed, "{conditions}");
    assert_eq!(status()["capacity"]["storage"], "1Gi");
    let events = world.events("default", "a");
    assert!(events.iter().any(|one| one.0 == "VolumeResizeFailed"), "{events:?}");
    world.model(|model| model.resizing.clear());
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(status()["capacity"]["storage"], "2Gi");
    assert!(status()["conditions"].is_null());
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_claim_in_use_is_protected() {
    let world = World::new(3);
    let driver = world.spawn();
    world.apply(&claim("a", "", "1Gi")).unwrap();
    let pod = "apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  containers: [{name: main, image: nginx}]
  volumes: [{name: d, persistentVolumeClaim: {claimName: a}}]
";
    world.apply(pod).unwrap();
    world.run_for(Duration::from_secs(30)).await;
    assert_eq!(get(&world, "Pod", "p").unwrap()["status"]["phase"], "Running");
    world.delete("PersistentVolumeClaim", "default", "a").unwrap();
    world.run_for(Duration::from_secs(30)).await;
    assert!(get(&world, "PersistentVolumeClaim", "a").is_some());
    world.delete("Pod", "default", "p").unwrap();
    world.run_for(Duration::from_secs(30)).await;
    assert!(get(&world, "PersistentVolumeClaim", "a").is_none());
    assert!(world.list("persistentvolumes", "").is_empty());
    driver.abort();
}

fn map(name: &str, owner: Option<(&Value, bool)>) -> String {
    let owners = owner.map_or(String::new(), |(owner, block)| {
        format!(
            ", ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: {}, uid: {}, \
             blockOwnerDeletion: {block}}}]",
            owner["metadata"]["name"], owner["metadata"]["uid"]
        )
    });
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default{owners}}}\n"
    )
}

#[tokio::test(start_paused = true)]
async fn dependents_follow_their_owner_as_asked() {
    let cases = [
        (Propagation::Background, false),
        (Propagation::Foreground, false),
        (Propagation::Orphan, true),
    ];
    for (propagation, survives) in cases {
        let world = World::new(4);
        let driver = world.spawn();
        let owner = world.apply(&map("owner", None)).unwrap().remove(0);
        world.apply(&map("child", Some((&owner, true)))).unwrap();
        world.run_for(Duration::from_secs(5)).await;
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        world.delete_with("ConfigMap", "default", "owner", options).unwrap();
        let there = get(&world, "ConfigMap", "owner").is_some();
        assert_eq!(there, propagation != Propagation::Background, "{propagation:?}");
        world.run_for(Duration::from_secs(5)).await;
        assert!(get(&world, "ConfigMap", "owner").is_none());
        let child = get(&world, "ConfigMap", "child");
        assert_eq!(child.is_some(), survives, "{propagation:?}");
        assert!(child.is_none_or(|child| child["metadata"]["ownerReferences"].is_null()));
        driver.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_another_uid_is_absent() {
    let world = World::new(5);
    let driver = world.spawn();
    let mut owner = world.apply(&map("owner", None)).unwrap().remove(0);
    owner["metadata"]["uid"] = Value::from("00000000-0000-4000-8000-000000000000");
    world.apply(&map("child", Some((&owner, false)))).unwrap();
    world.run_for(Duration::from_secs(5)).await;
    assert!(get(&world, "ConfigMap", "child").is_none());
    assert!(get(&world, "ConfigMap", "owner").is_some());
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_namespace_empties_and_waits_for_finalizers() {
    let world = World::new(6);
    let driver = world.spawn();
    world.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: space}\n").unwrap();
    world.run_for(Duration::from_secs(2)).await;
    assert!(world.get("ServiceAccount", "space", "default").is_some());
    assert!(world.get("ConfigMap", "space", "kube-root-ca.crt").is_some());
    world
        .apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: space, finalizers: [a.b/c]}\n")
        .unwrap();
    world.delete("Namespace", "", "space").unwrap();
    world.run_for(Duration::from_secs(10)).await;
    let namespace = world.get("Namespace", "", "space").expect("held by a finalizer");
    assert_eq!(namespace["status"]["phase"], "Terminating");
    assert!(namespace["status"]["conditions"].to_string().contains("a.b/c in 1 resource"));
    let refused = world
        .apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d, namespace: space}\n")
        .expect_err("no new content");
    assert_eq!(refused.code, 403);
    world
        .edit("ConfigMap", "space", "c", |map| {
            map["metadata"]["finalizers"] = Value::Array(Vec::new());
        })
        .unwrap();
    world.run_for(Duration::from_secs(10)).await;
    assert!(world.get("Namespace", "", "space").is_none());
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_budget_counts_healthy_pods() {
    let world = World::new(7);
    let driver = world.spawn();
    world
        .apply(
            "apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b, namespace: default}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: web}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: default}
spec:
  serviceName: web
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx}]}
",
        )
        .unwrap();
    world.run_for(Duration::from_secs(60)).await;
    let status = get(&world, "PodDisruptionBudget", "b").unwrap()["status"].clone();
    assert_eq!(status["expectedPods"], 3);
    assert_eq!(status["currentHealthy"], 3);
    assert_eq!(status["desiredHealthy"], 2);
    assert_eq!(status["disruptionsAllowed"], 1);
    driver.abort();
}
