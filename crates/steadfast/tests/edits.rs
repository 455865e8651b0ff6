//! The spec is edited in every phase: the edit is taken up, also while a rollout is stuck (fault
//! catalogue PG-35, G-50, G-55, G-56).
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use sim::builtin::pods::images::ImageRule;
use support::{Bench, LONG, NAME, TEST_DB, login, rules, simulate, text};

const PHASES: [&str; 6] =
    ["Pending", "Provisioning", "Configuring", "Deploying", "Verifying", "Ready"];

/// An edit, and how the world shows that it is in force.
#[derive(Clone, Copy)]
struct Edit {
    name: &'static str,
    change: fn(&mut Value),
    in_force: fn(&Bench) -> bool,
}

fn pod(bench: &Bench) -> Value {
    bench.world.get("Pod", "default", "test-db-0").unwrap_or_default()
}

const EDITS: [Edit; 3] = [
    Edit {
        name: "image",
        change: |database| database["spec"]["image"] = json!("postgres:14.19"),
        in_force: |bench| text(&pod(bench), "/spec/containers/0/image") == "postgres:14.19",
    },
    Edit {
        name: "parameters",
        change: |database| database["spec"]["parameters"] = json!({"max_connections": "50"}),
        in_force: |bench| {
            let server = bench.world.postgres("default", "test-db-0");
            let map = bench.world.get("ConfigMap", "default", "test-db-config").unwrap_or_default();
            server.is_some()
                && text(&map, "/data/postgresql.conf").contains("max_connections = '50'")
        },
    },
    Edit {
        name: "resources",
        change: |database| {
            database["spec"]["resources"] = json!({"requests": {"memory": "128Mi"}});
        },
        in_force: |bench| {
            text(&pod(bench), "/spec/containers/0/resources/requests/memory") == "128Mi"
        },
    },
];

/// Waits for the phase, changes the spec at once, and waits for Ready with the edit in force.
async fn edited_in(phase: &'static str, edit: Edit) {
    let bench = Bench::new(41);
    rules::install(&bench.world);
    let operator = bench.operator();
    bench.apply(TEST_DB);
    let key = sim::Key::new("database.example.com", "databases", "default", NAME);
    let seen = bench.world.wait_until(LONG, |store| {
        store.get(&key).is_some_and(|d| text(d, "/status/phase") == phase)
    });
    assert!(seen.await, "{phase} was never seen");
    bench.edit(edit.change);
    bench.settle(NAME).await;
    assert!((edit.in_force)(&bench), "{} edited in {phase} is not in force", edit.name);
    if edit.name == "parameters" {
        let client = login::application(&bench.world).await.expect("logged in");
        assert_eq!(login::ask(&client, "SHOW max_connections").await.as_deref(), Ok("50"));
    }
    rules::hold(&bench.world);
    operator.kill();
}

#[test]
fn g_56_an_edit_in_every_phase_of_the_bring_up_is_taken_up() {
    let mut cases = 0;
    for phase in PHASES {
        for edit in EDITS {
            simulate(move || edited_in(phase, edit));
            cases += 1;
        }
    }
    println!("edits in every phase: {cases} cases");
}

#[test]
fn an_edit_in_failed_is_taken_up_at_once() {
    for edit in EDITS {
        simulate(move || async move {
            let bench = Bench::new(42);
            let _operator = bench.operator();
            bench
                .world
                .model(|model| model.images.rule("registry.example.com", ImageRule::Missing));
            bench.apply(&TEST_DB.replace("postgres:14", "registry.example.com/nothing:14"));
            let failed = bench.until(Duration::from_secs(1800), |_| bench.phase(NAME) == "Failed");
            assert!(failed.await, "{}", bench.says(NAME));
            bench.edit(|database| {
                database["spec"]["image"] = json!("postgres:14");
                (edit.change)(database);
            });
            bench.settle(NAME).await;
            assert!((edit.in_force)(&bench), "{} edited in Failed is not in force", edit.name);
        });
    }
}

#[test]
fn pg_35_g_50_a_stuck_roll_is_freed_by_a_corrected_image_and_the_pod_is_replaced_once() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(43).await;
        rules::install(&bench.world);
        login::write_rows(&bench.world).await;
        bench.world.model(|model| model.images.rule("postgres:14.99", ImageRule::Missing));
        bench.edit(|database| database["spec"]["image"] = json!("postgres:14.99"));
        bench.told(NAME, &["False", "ImagePullFailed", "14.99"], Duration::from_secs(60)).await;
        let stuck = bench.uid("Pod", "test-db-0");
        tokio::time::sleep(Duration::from_secs(120)).await;
        bench.edit(|database| database["spec"]["image"] = json!("postgres:14.19"));
        bench.settle(NAME).await;
        assert_ne!(bench.uid("Pod", "test-db-0"), stuck);
        let deleted = bench.writes().iter().filter(|w| *w == "delete pods/test-db-0").count();
        assert_eq!(deleted, 1, "the blocking pod is deleted once");
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS));
        rules::hold(&bench.world);
    });
}

#[test]
fn g_55_ten_edits_within_two_seconds_end_as_the_last_one_says() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(44).await;
        for round in 0..10 {
            bench.edit(|database| {
                database["spec"]["parameters"] = match round % 2 {
                    0 => json!({"work_mem": format!("{}MB", 4 + round)}),
                    _ => json!({"max_connections": format!("{}", 50 + round)}),
                };
            });
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        bench.settle(NAME).await;
        let map = bench.world.get("ConfigMap", "default", "test-db-config").expect("it exists");
        let conf = text(&map, "/data/postgresql.conf");
        assert!(conf.contains("max_connections = '59'"), "{conf}");
        assert!(!conf.contains("work_mem"), "half of an earlier edit remains: {conf}");
        let client = login::application(&bench.world).await.expect("logged in");
        assert_eq!(login::ask(&client, "SHOW max_connections").await.as_deref(), Ok("59"));
    });
}

#[test]
fn pg_13_the_server_shows_each_setting_as_the_spec_gives_it() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(45).await;
        let settings = [
            ("log_line_prefix", "%m [%p] 'it''s' \\ \"q\" "),
            ("application_name", "a\\b'c"),
            ("search_path", "\"$user\", public"),
            ("work_mem", "12MB"),
        ];
        bench.edit(|database| {
            database["spec"]["parameters"] = json!(std::collections::BTreeMap::from(settings))
        });
        bench.settle(NAME).await;
        for (name, value) in [("log_line_prefix", settings[0].1), ("work_mem", "12MB")] {
            let client = login::application(&bench.world).await.expect("logged in");
            assert_eq!(login::ask(&client, &format!("SHOW {name}")).await.as_deref(), Ok(value));
        }
    });
}
