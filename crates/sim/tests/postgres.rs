//! The PostgreSQL model behind its wire protocol, through a real client; and in pods.

use std::time::Duration;

use serde_json::Value;
use sim::external::postgres::Server;
use sim::world::World;
use tokio::io::DuplexStream;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

fn cluster(image: &str, extra_env: &str, extra_args: &str) -> String {
    format!(
        "apiVersion: v1
kind: Secret
metadata: {{name: su, namespace: default}}
data: {{password: c2VjcmV0}}
---
apiVersion: v1
kind: Service
metadata: {{name: db, namespace: default}}
spec: {{selector: {{app: db}}, ports: [{{name: sql, port: 5432, targetPort: sql}}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db, namespace: default}}
spec:
  serviceName: db
  replicas: 1
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec:
      automountServiceAccountToken: false
      containers:
      - name: postgres
        image: {image}
        terminationMessagePolicy: FallbackToLogsOnError
        args: [postgres{extra_args}]
        env:
        - {{name: PGDATA, value: /var/lib/postgresql/data/pgdata}}
        - {{name: POSTGRES_PASSWORD, valueFrom: {{secretKeyRef: {{name: su, key: password}}}}}}
{extra_env}
        ports: [{{name: sql, containerPort: 5432}}]
        readinessProbe: {{exec: {{command: [pg_isready]}}}}
        volumeMounts: [{{name: data, mountPath: /var/lib/postgresql/data}}]
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
"
    )
}

async fn ready(world: &World) {
    let key = sim::Key::new("", "pods", "default", "db-0");
    let up = world.wait_until(Duration::from_secs(120), |store| {
        let conditions = store.get(&key).and_then(|pod| pod["status"]["conditions"].as_array());
        conditions
            .is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
    });
    assert!(up.await, "{:?}", world.get("Pod", "default", "db-0").map(|pod| pod["status"].clone()));
    // The Service's endpoints follow a moment later.
    world.run_for(Duration::from_millis(100)).await;
}

async fn connect(
    stream: DuplexStream,
    user: &str,
    password: &str,
    database: &str,
) -> Result<Client, tokio_postgres::Error> {
    let mut config = Config::new();
    config.user(user).password(password).dbname(database);
    let (client, connection) = config.connect_raw(stream, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn open(world: &World, user: &str, password: &str, database: &str) -> Result<Client, String> {
    let stream = world.dial("db.default.svc.cluster.local", 5432).map_err(|e| e.to_string())?;
    connect(stream, user, password, database).await.map_err(|error| said(&error))
}

fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(refusal) => format!("{} {}", refusal.code().code(), refusal.message()),
        None => error.to_string(),
    }
}

/// Rows of the last statement, columns joined by `|`; or the error.
async fn ask(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Ok(messages) => {
            let rows = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(
                    (0..row.len())
                        .map(|i| row.get(i).unwrap_or("NULL"))
                        .collect::<Vec<_>>()
                        .join("|"),
                ),
                _ => None,
            });
            rows.collect::<Vec<_>>().join("\n")
        }
        Err(error) => said(&error),
    }
}

async fn world(seed: u64, yaml: &str) -> (World, tokio::task::JoinHandle<()>) {
    let world = World::new(seed);
    let driver = world.spawn();
    world.apply(yaml).expect("applied");
    (world, driver)
}

#[tokio::test(start_paused = true)]
async fn passwords_are_checked_and_data_outlive_pods() {
    let (world, driver) = world(1, &cluster("postgres:17", "", "")).await;
    ready(&world).await;
    let wrong = open(&world, "postgres", "wrong", "postgres").await.err();
    assert_eq!(
        wrong.as_deref(),
        Some("28P01 password authentication failed for user \"postgres\"")
    );
    let unknown = open(&world, "nobody", "secret", "postgres").await.err();
    assert_eq!(
        unknown.as_deref(),
        Some("28P01 password authentication failed for user \"nobody\"")
    );
    let absent = open(&world, "postgres", "secret", "nope").await.err();
    assert_eq!(absent.as_deref(), Some("3D000 database \"nope\" does not exist"));
    let client = open(&world, "postgres", "secret", "postgres").await.expect("logged in");
    let before = ask(&client, "SELECT system_identifier FROM pg_control_system()").await;
    assert!(before.starts_with('7'), "{before}");
    ask(
        &client,
        "CREATE TABLE t (id int PRIMARY KEY, name text); INSERT INTO t VALUES (1, 'a'), (2, 'b')",
    )
    .await;
    drop(client);
    let uid = |world: &World| {
        world.get("Pod", "default", "db-0").map(|pod| pod["metadata"]["uid"].clone())
    };
    let old = uid(&world);
    world.delete("Pod", "default", "db-0").expect("deleted");
    world.run_for(Duration::from_secs(3)).await;
    ready(&world).await;
    assert_ne!(uid(&world), old);
    let client = open(&world, "postgres", "secret", "postgres").await.expect("logged in");
    assert_eq!(ask(&client, "SELECT system_identifier FROM pg_control_system()").await, before);
    assert_eq!(ask(&client, "SELECT * FROM t ORDER BY id DESC").await, "2|b\n1|a");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn transactions_roll_back_and_fail_as_a_whole() {
    let (world, driver) = world(2, &cluster("postgres:17", "", "")).await;
    ready(&world).await;
    let client = open(&world, "postgres", "secret", "postgres").await.expect("logged in");
    let cases = [
        ("CREATE ROLE app LOGIN PASSWORD 'x'", ""),
        ("CREATE ROLE app", "42710 role \"app\" already exists"),
        ("CREATE DATABASE app OWNER app", ""),
        ("CREATE DATABASE app", "42P04 database \"app\" already exists"),
        ("BEGIN; CREATE ROLE gone; ROLLBACK", ""),
        ("SELECT count(*) FROM pg_roles WHERE rolname = 'gone'", "0"),
        ("BEGIN", ""),
        ("SELECT nope", "42703 column \"nope\" does not exist"),
        (
            "SELECT 1",
            "25P02 current transaction is aborted, commands ignored until end of transaction block",
        ),
        ("COMMIT", ""),
        ("CREATE ROLE half; SELECT nope", "42703 column \"nope\" does not exist"),
        ("SELECT count(*) FROM pg_roles WHERE rolname = 'half'", "0"),
        ("BEGIN READ ONLY", ""),
        ("CREATE ROLE ro", "25006 cannot execute CREATE ROLE in a read-only transaction"),
        ("ROLLBACK", ""),
        (
            "BEGIN; CREATE TEMPORARY TABLE p (v pg_catalog.text) ON COMMIT DROP; INSERT INTO pg_temp.p VALUES ('x')",
            "",
        ),
        ("SELECT v FROM pg_temp.p", "x"),
        ("ROLLBACK", ""),
        ("SELECT v FROM pg_temp.p", "42P01 relation \"pg_temp.p\" does not exist"),
        ("SELEC 1", "42601 syntax error at or near \"SELEC\""),
        ("SHOW nope", "42704 unrecognized configuration parameter \"nope\""),
        ("CREATE DATABASE \"we\"\"ird\"", ""),
        ("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'app'", "app"),
    ];
    for (sql, expected) in cases {
        assert_eq!(ask(&client, sql).await, expected, "{sql}");
    }
    let app = open(&world, "app", "x", "app").await.expect("logged in");
    assert_eq!(ask(&app, "CREATE ROLE y").await, "42501 permission denied to create role");
    assert_eq!(ask(&app, "CREATE TABLE t (a int)").await, "", "the owner of the database may");
    ask(&client, "REVOKE ALL ON DATABASE postgres FROM PUBLIC").await;
    let kept_out = open(&world, "app", "x", "postgres").await.err();
    assert_eq!(kept_out.as_deref(), Some("42501 permission denied for database \"postgres\""));
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn bad_starts_end_in_a_crash_loop_with_the_servers_words() {
    let cases = [
        ("", ", -c, nope=1", "FATAL:  unrecognized configuration parameter \"nope\""),
        ("", ", -c, config_file=/nope", "could not access the server configuration file \"/nope\""),
        (
            "        - {name: POSTGRES_PASSWORD_FILE, value: /x}",
            "",
            "error: both POSTGRES_PASSWORD and POSTGRES_PASSWORD_FILE are set",
        ),
    ];
    for (environment, args, words) in cases {
        let (world, driver) = world(3, &cluster("postgres:17", environment, args)).await;
        world.run_for(Duration::from_secs(60)).await;
        let pod = world.get("Pod", "default", "db-0").expect("the pod");
        let status = &pod["status"]["containerStatuses"][0];
        assert_eq!(status["state"]["waiting"]["reason"], "CrashLoopBackOff", "{status}");
        let message = status["lastState"]["terminated"]["message"].as_str().unwrap_or("");
        assert!(message.contains(words), "{message}");
        driver.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn another_major_version_does_not_start_on_old_data() {
    let (world, driver) = world(4, &cluster("postgres:14", "", "")).await;
    ready(&world).await;
    world.apply(&cluster("postgres:17", "", "")).expect("applied");
    world.run_for(Duration::from_secs(60)).await;
    let pod = world.get("Pod", "default", "db-0").expect("the pod");
    let message = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["message"];
    let message = message.as_str().unwrap_or("");
    let detail = "The data directory was initialized by PostgreSQL version 14, which is not \
                  compatible with this version 17.7";
    assert!(message.contains("database files are incompatible with server"), "{message}");
    assert!(message.contains(detail), "{message}");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_disturbed_server_shows_it() {
    let (world, driver) = world(5, &cluster("postgres:17", "", "")).await;
    ready(&world).await;
    let client = open(&world, "postgres", "secret", "postgres").await.expect("logged in");
    world.disturb("default", "db-0", |server| server.read_only = true).expect("a server");
    let refused = "25006 cannot execute CREATE ROLE in a read-only transaction";
    assert_eq!(ask(&client, "CREATE ROLE x").await, refused);
    assert_eq!(ask(&client, "SHOW transaction_read_only").await, "on");
    world.disturb("default", "db-0", |server| server.read_only = false).expect("a server");
    world.disturb("default", "db-0", |server| server.disk_full = true).expect("a server");
    let full = ask(&client, "CREATE ROLE x").await;
    assert!(full.starts_with("53100 could not extend file"), "{full}");
    world.disturb("default", "db-0", |server| server.disk_full = false).expect("a server");
    world
        .disturb("default", "db-0", |server| server.locked.insert("postgres".into()))
        .expect("a server");
    ask(&client, "SET lock_timeout = '5s'").await;
    let late = ask(&client, "ALTER ROLE postgres PASSWORD 'y'").await;
    assert_eq!(late, "55P03 canceling statement due to lock timeout");
    world.disturb("default", "db-0", |server| server.locked.clear()).expect("a server");
    world.disturb("default", "db-0", |server| server.silent = true).expect("a server");
    world.run_for(Duration::from_secs(5)).await;
    assert!(world.dial("db.default.svc", 5432).is_err(), "not ready, so no endpoint");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_port_forward_meets_the_loopback_rules() {
    let (world, driver) = world(6, &cluster("postgres:17", "", "")).await;
    ready(&world).await;
    let stream = world.forward("default", "db-0", 5432).expect("forwarded");
    let client = connect(stream, "postgres", "wrong", "postgres").await;
    assert!(client.is_ok(), "the image trusts 127.0.0.1 unless told otherwise");
    driver.abort();
    let strict = "        - {name: POSTGRES_INITDB_ARGS, value: --auth-host=scram-sha-256}";
    let (world, driver) = self::world(7, &cluster("postgres:17", strict, "")).await;
    ready(&world).await;
    let stream = world.forward("default", "db-0", 5432).expect("forwarded");
    let error =
        connect(stream, "postgres", "wrong", "postgres").await.map(drop).expect_err("refused");
    assert_eq!(said(&error), "28P01 password authentication failed for user \"postgres\"");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn verifiers_made_by_clients_work() {
    let (world, driver) = world(8, &cluster("postgres:16", "", "")).await;
    ready(&world).await;
    let client = open(&world, "postgres", "secret", "postgres").await.expect("logged in");
    let verifier = postgres_protocol::password::scram_sha_256(b"pass word");
    ask(&client, &format!("CREATE ROLE app LOGIN PASSWORD '{verifier}'")).await;
    assert!(open(&world, "app", "pass word", "postgres").await.is_ok());
    let refused = open(&world, "app", "password", "postgres").await.err();
    assert_eq!(refused.as_deref(), Some("28P01 password authentication failed for user \"app\""));
    ask(&client, "ALTER ROLE app NOLOGIN").await;
    let refused = open(&world, "app", "pass word", "postgres").await.err();
    assert_eq!(refused.as_deref(), Some("28000 role \"app\" is not permitted to log in"));
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_crashed_server_comes_back() {
    let (world, driver) = world(9, &cluster("postgres:17", "", "")).await;
    ready(&world).await;
    let client = open(&world, "postgres", "secret", "postgres").await.expect("logged in");
    let server: std::sync::Arc<Server> = world.postgres("default", "db-0").expect("a server");
    let identifier = server.identifier();
    server.crash("PANIC:  could not write to file \"pg_wal/xlogtemp.29\": No space left on device");
    world.model(|_| ());
    world.run_for(Duration::from_secs(1)).await;
    let lost = ask(&client, "SELECT 1").await;
    assert!(lost.contains("57P01") || lost.contains("closed"), "{lost}");
    ready(&world).await;
    let pod: Value = world.get("Pod", "default", "db-0").expect("the pod");
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 1);
    assert_eq!(world.postgres("default", "db-0").expect("a server").identifier(), identifier);
    driver.abort();
}
