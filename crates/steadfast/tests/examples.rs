//! Every manifest of `examples/` is accepted by the API server and by the operator, and does what its
//! comment says.

mod support;

use std::collections::BTreeMap;

use support::{Bench, LONG, simulate};

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

#[test]
fn every_example_is_accepted_and_becomes_what_it_says() {
    simulate(|| async {
        let bench = Bench::new(11);
        let _operator = bench.operator();
        let examples = examples();
        assert!(examples.len() >= 5, "{:?}", examples.keys());
        for (file, text) in &examples {
            bench.apply(text);
            let name = file.trim_end_matches(".yaml");
            assert!(bench.database(name).is_some(), "{file} is named after its Database");
            if name == "dependent-db" {
                bench.told(name, &["False", "ExternalDependencyUnavailable", "broker"], LONG).await;
                assert_eq!(bench.phase(name), "Provisioning", "{file}");
            } else {
                bench.settle(name).await;
            }
        }
        println!("{} examples", examples.len());
    });
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
