//! Somebody changes the labels by which pods and claims are found: by their StatefulSet, by the
//! Services, by the watch. They are put back, told, and nothing restarts (issue 2).
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::{Bench, FOREIGN_SET, NAME, TEST_DB, login, replicas, rules, simulate, text};

const SOON: Duration = Duration::from_secs(60);
const KEYS: [&str; 4] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/name",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/component",
];

fn labels(bench: &Bench, kind: &str, name: &str) -> Value {
    let found = bench.world.get(kind, "default", name).unwrap_or_default();
    let all = found["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    let ours =
        all.into_iter().filter(|(key, _)| KEYS.contains(&key.as_str()) || key.contains("role"));
    Value::Object(ours.collect())
}

/// Labels an object otherwise, as `kubectl label --overwrite` does; a label without a value goes.
fn label(bench: &Bench, kind: &str, name: &str, changes: &[(&str, Option<&str>)]) {
    let changed = bench.world.edit(kind, "default", name, |object| {
        let labels = object["metadata"]["labels"].as_object_mut().expect("labels");
        for (key, value) in changes {
            match value {
                Some(value) => labels.insert((*key).to_owned(), json!(value)),
                None => labels.remove(*key),
            };
        }
    });
    changed.expect("labelled");
}

fn told(bench: &Bench, name: &str) -> bool {
    let events = bench.world.events("default", NAME);
    events.iter().any(|(reason, message)| reason == "EditReverted" && message.contains(name))
}

/// What `kubectl label` may do to an object of ours.
fn edits() -> Vec<Vec<(&'static str, Option<&'static str>)>> {
    let mut all: Vec<Vec<_>> = KEYS.iter().map(|key| vec![(*key, Some("other"))]).collect();
    all.extend(KEYS.iter().map(|key| vec![(*key, None)]));
    all.push(KEYS.iter().map(|key| (*key, None)).collect());
    all
}

#[test]
fn a_pod_that_is_labelled_otherwise_is_found_again_and_does_not_restart() {
    for (pods, pod) in [(1, "test-db-0"), (3, "test-db-0"), (3, "test-db-2")] {
        simulate(move || async move {
            let bench = Bench::new(131);
            rules::install(&bench.world);
            let _operator = bench.operator();
            bench.apply(&replicas::manifest(pods));
            bench.settle(NAME).await;
            replicas::whole(&bench, pods).await;
            login::write_rows(&bench.world).await;
            let role =
                [vec![("steadfast.dev/role", Some("other"))], vec![("steadfast.dev/role", None)]];
            for changes in edits().into_iter().chain(role) {
                tokio::time::sleep(Duration::from_secs(1200)).await;
                let (uid, before) = (bench.uid("Pod", pod), labels(&bench, "Pod", pod));
                label(&bench, "Pod", pod, &changes);
                let back = bench.until(SOON, |_| labels(&bench, "Pod", pod) == before);
                assert!(
                    back.await,
                    "{pod} {changes:?}: {} {}",
                    labels(&bench, "Pod", pod),
                    bench.says(NAME)
                );
                replicas::whole(&bench, pods).await;
                assert_eq!(bench.uid("Pod", pod), uid, "{pod} {changes:?}: it was restarted");
                let live = bench.world.get("Pod", "default", pod).expect("it exists");
                assert_eq!(text(&live, "/metadata/ownerReferences/0/kind"), "StatefulSet");
            }
            assert!(told(&bench, pod), "{:#?}", bench.world.events("default", NAME));
            assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
        });
    }
}

#[test]
fn a_claim_that_is_labelled_otherwise_is_labelled_again() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(132).await;
        rules::install(&bench.world);
        let (kind, name) = ("PersistentVolumeClaim", "data-test-db-0");
        for changes in edits() {
            tokio::time::sleep(Duration::from_secs(1200)).await;
            let before = labels(&bench, kind, name);
            label(&bench, kind, name, &changes);
            // A claim that the watch lost is looked for when the Database is verified again.
            let back =
                bench.until(Duration::from_secs(330), |_| labels(&bench, kind, name) == before);
            assert!(back.await, "{changes:?}: {}", bench.says(NAME));
            bench.settle(NAME).await;
        }
        assert!(told(&bench, name), "{:#?}", bench.world.events("default", NAME));
    });
}

/// A pod that its set let go of would run on for ever: it goes with the Database, whatever the
/// policy says of the data.
#[test]
fn a_pod_that_was_let_go_goes_with_the_database() {
    for policy in ["Retain", "Delete"] {
        for changes in edits() {
            simulate(move || async move {
                let (bench, operator) = Bench::with_test_db(133).await;
                bench.edit(|database| database["spec"]["deletionPolicy"] = json!(policy));
                bench.settle(NAME).await;
                operator.kill();
                tokio::time::sleep(Duration::from_secs(5)).await;
                label(&bench, "Pod", "test-db-0", &changes);
                tokio::time::sleep(Duration::from_secs(5)).await;
                bench.world.delete("Database", "default", NAME).expect("deleted");
                let _operator = bench.operator();
                let gone = bench.until(SOON, |_| {
                    bench.database(NAME).is_none() && bench.uid("Pod", "test-db-0").is_empty()
                });
                assert!(gone.await, "{policy} {changes:?}: {}", bench.says(NAME));
                tokio::time::sleep(SOON).await;
                let claim = bench.uid("PersistentVolumeClaim", "data-test-db-0");
                assert_eq!(claim.is_empty(), policy == "Delete", "{policy} {changes:?}");
            });
        }
    }
}

/// A pod of somebody else that has the name of one of ours is never touched, and told.
#[test]
fn a_strangers_pod_in_the_way_is_told_and_its_removal_heals() {
    simulate(|| async {
        let bench = Bench::new(134);
        rules::install(&bench.world);
        bench.apply(
            "{apiVersion: v1, kind: Pod, metadata: {name: test-db-0, namespace: default},
              spec: {containers: [{name: main, image: 'nginx:1'}]}}",
        );
        let _operator = bench.operator();
        bench.apply(TEST_DB);
        let uid = bench.uid("Pod", "test-db-0");
        let words = ["NameConflict", "pod test-db-0 was made by somebody else", "remove it"];
        bench.told(NAME, &words, SOON).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(bench.uid("Pod", "test-db-0"), uid);
        bench.world.delete("Pod", "default", "test-db-0").expect("deleted");
        bench.settle(NAME).await;
    });
}

/// Name, revision and claim of a pod tell nothing of whose it is: neither labelled nor deleted, ready
/// or not, while the Database stands and when it goes.
#[test]
fn a_pod_that_anothers_set_left_behind_is_never_touched() {
    for ready in [true, false] {
        simulate(move || async move {
            let bench = Bench::new(135);
            bench.apply(FOREIGN_SET);
            let up = bench.until(SOON, |_| is_ready_pod(&bench));
            assert!(up.await);
            let orphan = sim::DeleteOptions {
                propagation: Some(sim::Propagation::Orphan),
                ..sim::DeleteOptions::default()
            };
            bench.world.delete_with("StatefulSet", "default", NAME, orphan).expect("deleted");
            if !ready {
                bench.world.model(|model| model.down.insert("node-1".to_owned()));
                assert!(bench.until(10 * SOON, |_| !is_ready_pod(&bench)).await);
            }
            let look = || {
                let pod = bench.world.get("Pod", "default", "test-db-0").unwrap_or_default();
                (pod["metadata"]["uid"].clone(), pod["metadata"]["labels"].clone())
            };
            let before = look();
            let _operator = bench.operator();
            bench.apply(TEST_DB);
            bench.told(NAME, &["NameConflict", "test-db-0"], SOON).await;
            tokio::time::sleep(10 * SOON).await;
            assert_eq!(look(), before, "ready: {ready}");
            bench.world.delete("Database", "default", NAME).expect("deleted");
            assert!(bench.until(SOON, |_| bench.database(NAME).is_none()).await);
            tokio::time::sleep(SOON).await;
            assert_eq!(look(), before, "ready: {ready}");
        });
    }
}

fn is_ready_pod(bench: &Bench) -> bool {
    let pod = bench.world.get("Pod", "default", "test-db-0").unwrap_or_default();
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// With `Delete` the volumes of standbys go too, whatever they are labelled.
#[test]
fn a_standbys_claim_that_is_labelled_otherwise_goes_with_the_database() {
    for changes in edits() {
        simulate(move || async move {
            let (bench, operator) = replicas::three(136).await;
            bench.edit(|database| database["spec"]["deletionPolicy"] = json!("Delete"));
            bench.settle(NAME).await;
            operator.kill();
            tokio::time::sleep(Duration::from_secs(5)).await;
            label(&bench, "PersistentVolumeClaim", "data-test-db-1", &changes);
            bench.world.delete("Database", "default", NAME).expect("deleted");
            let _operator = bench.operator();
            assert!(bench.until(2 * SOON, |_| bench.database(NAME).is_none()).await);
            tokio::time::sleep(SOON).await;
            let claim = bench.uid("PersistentVolumeClaim", "data-test-db-1");
            assert!(claim.is_empty(), "{changes:?}");
        });
    }
}
