//! What cannot be done is refused with its cause within five seconds after the API shows it, and is
//! healed by a corrected manifest alone; nothing is lost (issue 2; fault catalogue PG-09, PG-11,
//! PG-12, PG-14, PG-17, PG-25, PG-32 to PG-34, PG-36, PG-45, PG-46, G-25, G-36, G-38).
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use sim::builtin::pods::images::ImageRule;
use sim::external::Dialogue;
use support::{Bench, LONG, NAME, TEST_DB, is_ready, login, rules, simulate, text};

/// The bound that issue 2 sets.
const BOUND: Duration = Duration::from_secs(5);

/// One refusal.
struct Case {
    name: &'static str,
    /// Whether a Ready Database with rows is there before.
    ready: bool,
    /// What a user does, or what happens.
    act: fn(&Bench),
    /// Whether the API shows the cause.
    shown: fn(&Bench) -> bool,
    /// Words of the condition `Ready` that name the cause.
    words: &'static [&'static str],
    /// The corrected manifest.
    heal: fn(&Bench),
}

fn at_once(_: &Bench) -> bool {
    true
}

fn set(database: &mut Value, pointer: &str, value: Value) {
    *database.pointer_mut(pointer).expect("the field is there") = value;
}

fn expands(bench: &Bench, allowed: bool) {
    let change = |class: &mut Value| class["allowVolumeExpansion"] = json!(allowed);
    bench.world.edit("StorageClass", "", "standard", change).expect("the class is edited");
}

fn pod_waits(bench: &Bench) -> bool {
    let pod = bench.world.get("Pod", "default", "test-db-0").unwrap_or_default();
    let waits = |list: &str| text(&pod, &format!("/status/{list}/0/state/waiting/reason"));
    ["containerStatuses", "initContainerStatuses"].iter().any(|list| {
        ["ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff"].contains(&waits(list).as_str())
    })
}

/// The guard has refused.
fn guard_refused(bench: &Bench) -> bool {
    let pod = bench.world.get("Pod", "default", "test-db-0").unwrap_or_default();
    let state = |which: &str| {
        text(&pod, &format!("/status/initContainerStatuses/0/{which}/terminated/message"))
    };
    !state("state").is_empty() || !state("lastState").is_empty()
}

fn event(bench: &Bench, name: &str, reason: &str) -> bool {
    bench.world.events("default", name).iter().any(|(r, _)| r == reason)
}

const DEPENDENCY: &str = "backend.other.svc.cluster.local";

const CASES: &[Case] = &[
    Case {
        name: "pg_32 storage shrink, admission absent",
        ready: true,
        act: |b| {
            b.lax();
            b.edit(|d| set(d, "/spec/storage/size", json!("1Gi")));
        },
        shown: at_once,
        words: &["StorageShrinkRefused", "10Gi", "1Gi"],
        heal: |b| b.edit(|d| set(d, "/spec/storage/size", json!("10Gi"))),
    },
    Case {
        name: "pg_31 storage growth of a class that cannot expand",
        ready: true,
        act: |b| {
            expands(b, false);
            b.edit(|d| set(d, "/spec/storage/size", json!("20Gi")));
        },
        shown: at_once,
        words: &["StorageExpansionRefused", "20Gi", "data-test-db-0", "standard"],
        heal: |b| {
            b.lax();
            b.edit(|d| set(d, "/spec/storage/size", json!("10Gi")));
        },
    },
    Case {
        name: "pg_17 renamed database, admission absent",
        ready: true,
        act: |b| {
            b.lax();
            b.edit(|d| set(d, "/spec/databaseName", json!("other")));
        },
        shown: at_once,
        words: &["RenameRefused", "spec.databaseName", "mydb"],
        heal: |b| b.edit(|d| set(d, "/spec/databaseName", json!("mydb"))),
    },
    Case {
        name: "pg_17 renamed user, admission absent",
        ready: true,
        act: |b| {
            b.lax();
            b.edit(|d| set(d, "/spec/username", json!("other")));
        },
        shown: at_once,
        words: &["RenameRefused", "spec.username", "admin"],
        heal: |b| b.edit(|d| set(d, "/spec/username", json!("admin"))),
    },
    Case {
        name: "pg_11 pg_46 identifier with SQL in it, admission absent",
        ready: false,
        act: |b| {
            b.lax();
            b.apply(&TEST_DB.replace("mydb", "'x\"; DROP DATABASE postgres; --'"));
        },
        shown: at_once,
        words: &["InvalidSpec", "spec.databaseName"],
        heal: |b| b.apply(TEST_DB),
    },
    Case {
        name: "pg_25 bad image",
        ready: false,
        act: |b| {
            b.world.model(|m| m.images.rule("postgres:14.99", ImageRule::Missing));
            b.apply(&TEST_DB.replace("postgres:14", "postgres:14.99"));
        },
        shown: pod_waits,
        words: &["ImagePullFailed", "postgres:14.99"],
        heal: |b| b.apply(TEST_DB),
    },
    Case {
        name: "missing storage class",
        ready: false,
        act: |b| {
            b.apply(
                &TEST_DB
                    .replace("size: 10Gi", "{size: 10Gi, storageClass: nowhere}")
                    .replace("storage:\n    {", "storage: {"),
            )
        },
        shown: at_once,
        words: &["StorageClassNotFound", "nowhere"],
        heal: |b| {
            b.apply(
                &TEST_DB
                    .replace("size: 10Gi", "{size: 10Gi, storageClass: standard}")
                    .replace("storage:\n    {", "storage: {"),
            )
        },
    },
    Case {
        name: "g_25 quota exhausted",
        ready: false,
        act: |b| {
            b.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: default}, spec: {hard: {requests.memory: 64Mi}}}");
            b.apply(&format!("{TEST_DB}  resources: {{requests: {{memory: 128Mi}}}}\n"));
        },
        shown: |b| event(b, NAME, "FailedCreate"),
        words: &["QuotaExceeded", "small"],
        heal: |b| b.apply(&format!("{TEST_DB}  resources: {{requests: {{memory: 32Mi}}}}\n")),
    },
    Case {
        name: "g_25 quota for Secrets used up",
        ready: false,
        act: |b| {
            b.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: default}, spec: {hard: {count/secrets: 0}}}");
            b.apply(TEST_DB);
        },
        shown: at_once,
        words: &["QuotaExceeded", "exceeded quota"],
        heal: |b| b.world.delete("ResourceQuota", "default", "none").expect("deleted"),
    },
    Case {
        name: "pg_36 dependency down",
        ready: false,
        act: |b| {
            b.world.model(|m| m.network.host(DEPENDENCY, 6000, Dialogue::Refuse));
            b.apply(&format!("{TEST_DB}  externalDependencies: [{{name: backend, address: '{DEPENDENCY}:6000'}}]\n"));
        },
        shown: at_once,
        words: &["ExternalDependencyUnavailable", "backend"],
        heal: |b| b.apply(TEST_DB),
    },
    Case {
        name: "pg_37 dependency outside the permitted hosts",
        ready: false,
        act: |b| {
            b.apply(&format!("{TEST_DB}  externalDependencies: [{{name: meta, url: 'http://169.254.169.254/latest'}}]\n"))
        },
        shown: at_once,
        words: &["DependencyRefused", "169.254.169.254"],
        heal: |b| b.apply(TEST_DB),
    },
    Case {
        name: "pg_34 image that breaks the contract",
        ready: false,
        act: |b| b.apply(&TEST_DB.replace("postgres:14", "registry.example.com/web:1")),
        shown: |b| b.phase(NAME) == "Verifying",
        words: &["ServerUnreachable"],
        heal: |b| b.apply(TEST_DB),
    },
    Case {
        name: "pg_33 another major version by its name",
        ready: true,
        act: |b| b.edit(|d| set(d, "/spec/image", json!("postgres:15"))),
        shown: at_once,
        words: &["MajorVersionChangeRefused", "postgres:15", "14"],
        heal: |b| b.edit(|d| set(d, "/spec/image", json!("postgres:14"))),
    },
    Case {
        name: "c_11 pg_33 another major version behind an opaque tag",
        ready: true,
        act: |b| {
            b.edit(|d| set(d, "/spec/image", json!("registry.example.com:5000/db/postgres:stable")))
        },
        shown: guard_refused,
        words: &["DataVersionMismatch", "14", "17"],
        heal: |b| b.edit(|d| set(d, "/spec/image", json!("postgres:14"))),
    },
    Case {
        name: "pg_14 setting that the server cannot start with",
        ready: true,
        act: |b| b.edit(|d| d["spec"]["parameters"] = json!({"shared_buffers": "lots"})),
        shown: pod_waits,
        words: &["ContainerCrashing", "shared_buffers"],
        heal: |b| b.edit(|d| d["spec"]["parameters"] = json!({"shared_buffers": "64MB"})),
    },
];

async fn check(case: &'static Case) -> Duration {
    let bench = Bench::new(51);
    rules::install(&bench.world);
    let operator = bench.operator();
    if case.ready {
        bench.apply(TEST_DB);
        bench.settle(NAME).await;
        login::write_rows(&bench.world).await;
    }
    (case.act)(&bench);
    assert!(bench.until(LONG, |_| (case.shown)(&bench)).await, "{}: never shown", case.name);
    let took = bench.told(NAME, case.words, BOUND).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    bench.told(NAME, &case.words[..1], Duration::from_secs(30)).await;
    let quiet = operator.handle.writes();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(operator.handle.writes() - quiet <= 2, "{}: it writes on and on", case.name);
    (case.heal)(&bench);
    let healed = bench.ready(NAME, Duration::from_secs(900)).await;
    assert!(healed, "{}: not healed: {}", case.name, bench.says(NAME));
    if case.ready {
        assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS), "{}", case.name);
    }
    let broken = bench.world.violations();
    assert!(broken.is_empty(), "{}: {broken:#?}", case.name);
    operator.kill();
    took
}

fn check_all(cases: impl Iterator<Item = &'static Case>) {
    for case in cases {
        let took = simulate(move || check(case));
        println!("{}: told after {took:?}", case.name);
    }
}

#[test]
fn each_refusal_of_a_new_database_names_its_cause_in_time_and_is_healed_by_the_manifest() {
    check_all(CASES.iter().filter(|case| !case.ready));
}

#[test]
fn each_refusal_of_a_running_database_names_its_cause_in_time_and_is_healed_by_the_manifest() {
    check_all(CASES.iter().filter(|case| case.ready));
}

#[test]
fn pg_19_an_empty_volume_after_data_existed_is_never_initialised_until_the_loss_is_accepted() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(52).await;
        let identifier =
            text(&bench.database(NAME).expect("it exists"), "/status/systemIdentifier");
        bench.world.delete("PersistentVolumeClaim", "default", "data-test-db-0").expect("deleted");
        bench.world.delete("Pod", "default", "test-db-0").expect("deleted");
        assert!(bench.until(LONG, guard_refused_in(&bench)).await, "{}", bench.says(NAME));
        bench.told(NAME, &["False", "DataMissing"], BOUND).await;
        assert_eq!(bench.condition(NAME, "Degraded")["reason"], "DataMissing");
        tokio::time::sleep(Duration::from_secs(1800)).await;
        assert!(bench.world.postgres("default", "test-db-0").is_none(), "a server was started");
        bench.edit(|d| {
            d["metadata"]["annotations"] = json!({"steadfast.dev/accept-data-loss": identifier})
        });
        assert!(bench.ready(NAME, Duration::from_secs(900)).await, "{}", bench.says(NAME));
        let now = text(&bench.database(NAME).expect("it exists"), "/status/systemIdentifier");
        assert_ne!(now, identifier);
    });
}

fn guard_refused_in(bench: &Bench) -> impl Fn(&sim::world::World) -> bool + '_ {
    |_| guard_refused(bench)
}

#[test]
fn admission_refuses_what_the_schema_can_say_and_names_the_field() {
    simulate(|| async {
        let bench = Bench::new(53);
        let long = "a".repeat(53);
        let cases = [
            ("pg_11", TEST_DB.replace("mydb", "'x\"; DROP TABLE t; --'"), "spec.databaseName"),
            ("pg_11", TEST_DB.replace("mydb", &"é".repeat(32)), "spec.databaseName"),
            ("pg_12", TEST_DB.replace("mydb", "template1"), "spec.databaseName"),
            ("pg_12", TEST_DB.replace("username: admin", "username: postgres"), "spec.username"),
            ("pg_12", TEST_DB.replace("username: admin", "username: pg_admin"), "spec.username"),
            ("g_38", TEST_DB.replace("name: test-db", &format!("name: {long}")), "52"),
            ("g_38", TEST_DB.replace("name: test-db", "name: a.b"), "metadata.name"),
            ("pg_23", TEST_DB.replace("replicas: 1", "replicas: 0"), "spec.replicas"),
            ("c_11", TEST_DB.replace("postgres:14", "'postgres:17 '"), "spec.image"),
            ("g_49", TEST_DB.replace("10Gi", "ten"), "spec.storage.size"),
            ("c_01", TEST_DB.replace("mydb", "2024"), "spec.databaseName"),
            (
                "c_01",
                format!("{TEST_DB}  parameters: {{max_connections: 200}}\n"),
                "max_connections",
            ),
            ("g_49", format!("{TEST_DB}  parameters: {{port: '1'}}\n"), "spec.parameters"),
        ];
        for (id, yaml, word) in &cases {
            let refused = bench.world.apply(yaml).expect_err(&format!("{id}: accepted: {yaml}"));
            assert!(refused.message.contains(word), "{id}: {}", refused.message);
        }
        assert!(bench.world.list("Database", "").is_empty());
        println!("admission: {} refusals", cases.len());
    });
}

#[test]
fn pg_32_pg_17_admission_refuses_shrinking_and_renaming_of_a_running_database() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(54).await;
        for (yaml, word) in [
            (TEST_DB.replace("10Gi", "1Gi"), "shrink"),
            (TEST_DB.replace("mydb", "other"), "spec.databaseName"),
            (TEST_DB.replace("admin", "other"), "spec.username"),
        ] {
            let refused = bench.world.apply(&yaml).expect_err("accepted");
            assert!(refused.message.contains(word), "{}", refused.message);
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(bench.ready(NAME, Duration::ZERO).await);
    });
}

#[test]
fn g_36_pg_45_a_foreign_object_of_each_name_blocks_is_not_touched_and_frees_the_way_when_gone() {
    let objects = [
        ("Service", NAME, "spec: {ports: [{port: 1}]}"),
        ("Service", "test-db-headless", "spec: {clusterIP: None, ports: [{port: 1}]}"),
        ("ConfigMap", "test-db-config", "data: {mine: 'yes'}"),
        ("Secret", "test-db-superuser", "stringData: {mine: 'yes'}"),
        ("Secret", "test-db-replication", "stringData: {mine: 'yes'}"),
    ];
    for (kind, name, rest) in objects {
        simulate(move || async move {
            let bench = Bench::new(55);
            let _operator = bench.operator();
            bench.apply(&format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: default}}\n{rest}\n"));
            let version = |bench: &Bench| {
                bench
                    .world
                    .get(kind, "default", name)
                    .map(|o| text(&o, "/metadata/resourceVersion"))
            };
            let before = version(&bench);
            bench.apply(TEST_DB);
            bench.told(NAME, &["NameConflict", name], BOUND).await;
            tokio::time::sleep(Duration::from_secs(120)).await;
            assert_eq!(version(&bench), before, "{kind} {name} was touched");
            bench.world.delete(kind, "default", name).expect("deleted");
            assert!(bench.ready(NAME, LONG).await, "{kind} {name}: {}", bench.says(NAME));
        });
    }
}

#[test]
fn pg_09_a_users_own_credentials_are_used_and_never_written() {
    simulate(|| async {
        let bench = Bench::new(56);
        let _operator = bench.operator();
        let secret = |keys: &str| {
            format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: test-db-credentials, namespace: default}}, stringData: {{{keys}}}}}"
            )
        };
        bench.apply(&secret("username: admin"));
        bench.apply(TEST_DB);
        bench.told(NAME, &["PasswordMissing", "password"], BOUND).await;
        bench.apply(&secret("username: admin, password: 'chosen by the user'"));
        let version = |b: &Bench| {
            let secret = b.world.get("Secret", "default", "test-db-credentials").expect("kept");
            text(&secret, "/metadata/resourceVersion")
        };
        let before = version(&bench);
        bench.settle(NAME).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(version(&bench), before, "the user's Secret was written");
        let login = login::login(&bench.world, NAME, ("admin", "chosen by the user", "mydb")).await;
        assert!(login.is_ok());
    });
}

#[test]
fn pg_45_two_databases_whose_names_collide_do_not_fight() {
    for (first, second) in [("a", "a-headless"), ("a-headless", "a")] {
        simulate(move || async move {
            let bench = Bench::new(57);
            let _operator = bench.operator();
            bench.apply(&TEST_DB.replace("name: test-db", &format!("name: {first}")));
            bench.settle(first).await;
            bench.apply(&TEST_DB.replace("name: test-db", &format!("name: {second}")));
            bench.told(second, &["NameConflict", first], Duration::from_secs(60)).await;
            let writes = bench.writes().len();
            tokio::time::sleep(Duration::from_secs(600)).await;
            assert!(
                bench.writes().len() - writes <= 4,
                "alternating writes: {:#?}",
                bench.writes().split_off(writes)
            );
            assert!(bench.ready(first, Duration::ZERO).await, "the first one suffers");
            bench.world.delete("Database", "default", first).expect("deleted");
            let free = bench.until(Duration::from_secs(300), |w| {
                w.get("Database", "default", second).is_some_and(|d| is_ready(&d))
            });
            assert!(free.await, "{second}: {}", bench.says(second));
        });
    }
}
