//! Every manifest of `examples/` is accepted by the API server and by the operator, and does what its
//! comment says.

mod support;

use std::collections::BTreeMap;

use support::{Bench, LONG, is_ready, simulate, text};

/// File name and text of every example.
fn examples() -> BTreeMap<String, String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let files = std::fs::read_dir(folder).expect("the examples are there");
    files
        .map(|file| file.expect("a file").path())
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("readable"))
        })
        .collect()
}

/// What examples say that they need of their cluster: namespaces, a class, a Secret, five nodes.
const SURROUNDINGS: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: dev}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: mesh}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: prod}}
---
{apiVersion: v1, kind: Secret, metadata: {name: zk-secure-tls, namespace: prod}, data: {combined.pem: YQ==, ca.pem: YQ==}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: volumes.sim.steadfast.dev
volumeBindingMode: WaitForFirstConsumer
";

fn furnish(bench: &Bench) {
    bench.apply(SURROUNDINGS);
    for number in 2..=5 {
        let node = sim::world::node(&format!("node-{number}"), &format!("172.18.0.{}", number + 1));
        bench.world.create(&node.to_string()).expect("a node");
    }
}

#[test]
fn every_example_is_accepted_and_becomes_what_it_says() {
    simulate(|| async {
        let bench = Bench::new(11);
        furnish(&bench);
        let _operator = bench.operator();
        let examples = examples();
        let mut kinds = BTreeMap::<String, usize>::new();
        for (file, text) in &examples {
            bench.apply(text);
            let object: serde_json::Value = serde_saphyr::from_str(text).expect("one document");
            let (kind, namespace) = (kind(&object), namespace(&object));
            *kinds.entry(kind.clone()).or_default() += 1;
            let name = file.trim_end_matches(".yaml");
            let stored = || bench.world.get(&kind, &namespace, name);
            assert!(stored().is_some(), "{file} is named after its {kind}");
            if name == "dependent-db" {
                bench.told(name, &["False", "ExternalDependencyUnavailable", "broker"], LONG).await;
                assert_eq!(bench.phase(name), "Provisioning", "{file}");
                continue;
            }
            let ready = bench.until(LONG, |_| stored().is_some_and(|object| is_ready(&object)));
            assert!(ready.await, "{file}: {:#}", stored().unwrap_or_default()["status"]);
        }
        assert!(kinds["Database"] >= 5 && kinds["ZookeeperCluster"] >= 4, "{kinds:?}");
        println!("{kinds:?}");
    });
}

fn kind(object: &serde_json::Value) -> String {
    text(object, "/kind")
}

fn namespace(object: &serde_json::Value) -> String {
    let namespace = text(object, "/metadata/namespace");
    if namespace.is_empty() { "default".to_owned() } else { namespace }
}

#[test]
fn a_database_to_throw_away_takes_its_volume_and_secrets_with_it() {
    simulate(|| async {
        let bench = Bench::new(12);
        let _operator = bench.operator();
        let examples = examples();
        bench.apply(&examples["scratch-db.yaml"]);
        bench.apply(&examples["test-db.yaml"]);
        bench.settle("scratch-db").await;
        bench.settle("test-db").await;
        for name in ["scratch-db", "test-db"] {
            bench.world.delete("Database", "default", name).expect("deleted");
        }
        let left = |kind: &str, name: &str| bench.world.get(kind, "default", name).is_some();
        let gone = bench.until(LONG, |_| {
            !left("PersistentVolumeClaim", "data-scratch-db-0")
                && !left("Secret", "scratch-db-superuser")
                && !left("Secret", "scratch-db-credentials")
                && !left("Database", "test-db")
                && !left("StatefulSet", "test-db")
        });
        assert!(gone.await, "the volume and Secrets of scratch-db go");
        assert!(left("PersistentVolumeClaim", "data-test-db-0"), "Retain is the default");
        assert!(left("Secret", "test-db-superuser"));
    });
}
