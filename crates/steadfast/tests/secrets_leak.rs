//! Passwords are searched for everywhere but in Secrets: logs, Events, status, metrics, requests,
//! pods, plans (fault catalogue PG-10, R8).
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use serde_json::json;
use support::logs::Logs;
use support::{Bench, NAME, login, simulate};

const SECRETS: [&str; 3] = ["test-db-superuser", "test-db-replication", "test-db-credentials"];

#[test]
fn pg_10_no_password_leaves_its_secret() {
    simulate(|| async {
        let (logs, _guard) = Logs::capture(tracing::Level::TRACE);
        let (bench, operator) = Bench::with_test_db(81).await;
        let mut markers = passwords(&bench);
        let planted = "planted-Marker-4711";
        let edited = bench.world.edit("Secret", "default", "test-db-credentials", |secret| {
            secret["data"]["password"] = json!(login::encoded(planted));
        });
        edited.expect("edited");
        tokio::time::sleep(Duration::from_secs(60)).await;
        bench.settle(NAME).await;
        assert!(login::login(&bench.world, NAME, ("admin", planted, "mydb")).await.is_ok());
        // A failing statement, a password that is refused, a Secret that is made anew.
        bench.world.disturb("default", "test-db-0", |c| c.locked.insert("admin".to_owned()));
        let second = "planted-Marker-0815\n";
        for value in [second, "planted-Marker-2342"] {
            let edited = bench.world.edit("Secret", "default", "test-db-credentials", |secret| {
                secret["data"]["password"] = json!(login::encoded(value));
            });
            edited.expect("edited");
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        bench.world.disturb("default", "test-db-0", |c| c.locked.clear());
        bench.world.delete("Secret", "default", "test-db-credentials").expect("deleted");
        tokio::time::sleep(Duration::from_secs(60)).await;
        bench.settle(NAME).await;
        // A superuser that is let in by a command, the first time in vain.
        bench.world.disturb("default", "test-db-0", |c| c.locked.insert("postgres".to_owned()));
        bench.world.delete("Secret", "default", "test-db-superuser").expect("deleted");
        tokio::time::sleep(Duration::from_secs(60)).await;
        bench.world.disturb("default", "test-db-0", |c| c.locked.clear());
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(login::superuser(&bench.world).await.is_ok());
        markers.extend(passwords(&bench));
        markers.extend([planted, second.trim(), "planted-Marker-2342"].map(str::to_owned));
        let encoded: Vec<String> = markers.iter().map(|m| login::encoded(m)).collect();
        markers.extend(encoded);
        // Nor is a verifier told, which a command is given on its standard input.
        markers.push("SCRAM-SHA-256$".to_owned());
        search(&bench, &operator.metrics.text(), &logs.text(), &markers);
    });
}

fn passwords(bench: &Bench) -> Vec<String> {
    SECRETS.iter().map(|name| login::secret(&bench.world, name, "password")).collect()
}

fn search(bench: &Bench, metrics: &str, logs: &str, markers: &[String]) {
    let mut places = vec![
        ("metrics".to_owned(), metrics.to_owned()),
        ("log".to_owned(), logs.to_owned()),
        ("requests".to_owned(), bench.world.cluster.with(|core| core.faults.trace())),
    ];
    for kind in [
        "Database",
        "Event",
        "Pod",
        "StatefulSet",
        "ConfigMap",
        "Service",
        "ControllerRevision",
        "PersistentVolumeClaim",
    ] {
        for object in bench.world.list(kind, "") {
            places.push((kind.to_owned(), object.to_string()));
        }
    }
    bench.world.model(|model| {
        for ((_, pod, container), text) in &model.logs {
            places.push((format!("log of {pod}/{container}"), text.clone()));
        }
    });
    assert!(places.len() > 15 && logs.len() > 10_000, "there is something to search in");
    for (place, text) in &places {
        for marker in markers {
            assert!(marker.len() > 10, "a marker that means something");
            assert!(!text.contains(marker.as_str()), "{place} holds a password");
        }
    }
    println!("{} markers in {} places: none found", markers.len(), places.len());
}
