//! `steadfast demo` as a person sees it: the built binary, a real PostgreSQL where one is installed,
//! kubectl through the line that it prints. `demo_ends.rs` has what becomes of it in the end.

mod console;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use console::{Demo, MOVES, TO_END, assert_in_order, command_lines, require, until};
use k8s_openapi::api::core::v1::Pod;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::Value;
use tokio_postgres::NoTls;

/// Gathers the command line of every process that runs while it lives.
struct Onlooker {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<BTreeSet<String>>>,
}

impl Onlooker {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut seen = BTreeSet::new();
            while !told.load(Ordering::Relaxed) {
                seen.extend(command_lines().into_iter().map(|(words, _)| words));
                // poll: processes that come and go
                std::thread::sleep(Duration::from_millis(20));
            }
            seen
        });
        Self { stop, thread: Some(thread) }
    }

    fn seen(mut self) -> BTreeSet<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("taken once").join().expect("no panic")
    }
}

/// One demo, everything that a person does with it.
#[tokio::test(flavor = "multi_thread")]
async fn the_exercise_of_two_terminals() {
    if require(true).is_none() {
        return;
    }
    let onlooker = Onlooker::start();
    // All that our own crates have to say, since what is searched for secrets must be everything.
    let ours =
        "warn,steadfast=trace,runner=trace,phased=trace,operators=trace,localnode=trace,sim=trace";
    let mut demo = Demo::start(&["--log", ours]);
    demo.until_said("The cluster stays open");
    assert_in_order(&demo.output(), &MOVES);
    look(&demo);
    logins(&demo).await;
    forwarded_logins(&demo).await;
    repairs(&mut demo);
    let mut passwords = passwords_of(&demo);
    rotation(&demo).await;
    passwords.extend(passwords_of(&demo));
    secrets_stay_secret(&demo, &passwords, &onlooker.seen());
    deletion(&mut demo).await;
    demo.signal("INT");
    let (status, output, took) = demo.end();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(took < TO_END, "{took:?}");
    demo.leaves_nothing();
}

/// The commands of the exercise's second terminal.
fn look(demo: &Demo) {
    let phase = demo.kubectl(&["get", "database", "test-db", "-o", "jsonpath={.status.phase}"]);
    assert_eq!(phase, "Ready");
    let conditions =
        demo.kubectl(&["get", "database", "test-db", "-o", "jsonpath={.status.conditions}"]);
    let conditions: Value = serde_json::from_str(&conditions).expect("JSON");
    let ready = conditions.as_array().and_then(|all| all.iter().find(|c| c["type"] == "Ready"));
    assert_eq!(ready.expect("there")["status"], "True");
    let table = demo.kubectl(&["get", "databases", "-o", "wide"]);
    assert_in_order(
        &table,
        &[
            "NAME",
            "PHASE",
            "READY",
            "REPLICAS",
            "ENDPOINT",
            "AGE",
            "IMAGE",
            "PRIMARY",
            "REASON",
            "test-db",
            "Ready",
            "true",
            "1/1",
            "postgres:14",
            "test-db-0",
            "AllChecksPassed",
        ],
    );
    let described = demo.kubectl(&["describe", "database", "test-db"]);
    assert_in_order(&described, &["Database Name:", "mydb", "Phase:", "Ready", "Events:"]);
    assert!(described.contains("Verifying -> Ready"), "{described}");
    demo.kubectl(&["wait", "--for=condition=Ready", "database/test-db", "--timeout=30s"]);
}

/// A key of a Secret.
fn secret(demo: &Demo, name: &str, key: &str) -> String {
    let encoded = demo.get(&["secret", name])["data"][key].as_str().unwrap_or("").to_owned();
    String::from_utf8(STANDARD.decode(encoded).expect("base64")).expect("text")
}

/// Logs in over any stream; answers what the server calls the method of the login, or its refusal.
async fn logged_in<S, T>(
    connection: (tokio_postgres::Client, tokio_postgres::Connection<S, T>),
) -> String
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (client, connection) = connection;
    let connection = tokio::spawn(connection);
    let question = "SELECT current_user::text || ' of ' || current_database()::text";
    let answer = client.query_one(question, &[]).await.expect("it answers").get(0);
    drop(client);
    let _ = connection.await;
    answer
}

fn code(error: &tokio_postgres::Error) -> String {
    error.code().map(|code| code.code().to_owned()).unwrap_or_else(|| error.to_string())
}

fn config(password: &str) -> tokio_postgres::Config {
    let mut config = tokio_postgres::Config::new();
    config.user("admin").dbname("mydb").password(password).connect_timeout(Duration::from_secs(20));
    config
}

/// On the pod's own address, at the port that the Service names.
async fn logins(demo: &Demo) {
    let pod = demo.get(&["pod", "test-db-0"]);
    let address = pod["status"]["podIP"].as_str().expect("an address").to_owned();
    assert!(address.starts_with("127.") && address != "127.0.0.1", "{address}");
    let with = |password: &str| {
        let mut config = config(password);
        config.host(&address).port(5432);
        async move { config.connect(NoTls).await }
    };
    let wrong = with("wrong").await.err().expect("a wrong password is refused");
    assert_eq!(code(&wrong), "28P01");
    let password = secret(demo, "test-db-credentials", "password");
    let right = with(&password).await.expect("the right password is accepted");
    assert_eq!(logged_in(right).await, "admin of mydb");
    // By scram, and by nothing else: the server keeps a verifier and its rule names the method.
    let superuser = secret(demo, "test-db-superuser", "password");
    let mut asking = tokio_postgres::Config::new();
    asking.user("postgres").password(&superuser).dbname("postgres").host(&address);
    let (client, connection) = asking.connect(NoTls).await.expect("the superuser's login");
    let connection = tokio::spawn(connection);
    let text = |sql: &'static str| {
        let client = &client;
        async move { client.query_one(sql, &[]).await.expect("an answer").get::<_, String>(0) }
    };
    let kept = text("SELECT rolpassword FROM pg_authid WHERE rolname = 'admin'").await;
    assert!(kept.starts_with("SCRAM-SHA-256$"), "not a verifier");
    let rules =
        "SELECT string_agg(DISTINCT auth_method, ',') FROM pg_hba_file_rules WHERE type = 'host'";
    assert_eq!(text(rules).await, "scram-sha-256");
    drop(client);
    let _ = connection.await;
}

/// Through the API server, as `kubectl port-forward` users do it.
async fn forwarded_logins(demo: &Demo) {
    let kubeconfig = Kubeconfig::read_from(demo.kubeconfig()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let settings = Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a config");
    let pods: Api<Pod> = Api::default_namespaced(Client::try_from(settings).expect("a client"));
    let password = secret(demo, "test-db-credentials", "password");
    for (password, right) in [("wrong", false), (password.as_str(), true)] {
        let mut forwarder = pods.portforward("test-db-0", &[5432]).await.expect("forwarded");
        let stream = forwarder.take_stream(5432).expect("one stream");
        let login = config(password).connect_raw(stream, NoTls).await;
        assert_eq!(login.is_ok(), right, "{:?}", login.as_ref().err());
        match login {
            Ok(login) => assert_eq!(logged_in(login).await, "admin of mydb"),
            Err(error) => assert_eq!(code(&error), "28P01"),
        }
        forwarder.abort();
    }
}

/// What is taken away comes back; what is edited is taken back, and the one who did it is named.
fn repairs(demo: &mut Demo) {
    let uid = |demo: &Demo| {
        demo.kubectl(&[
            "get",
            "service",
            "test-db",
            "--ignore-not-found",
            "-o",
            "jsonpath={.metadata.uid}",
        ])
    };
    let before = uid(demo);
    demo.kubectl(&["delete", "service", "test-db"]);
    until("another Service", || !uid(demo).is_empty() && uid(demo) != before);
    demo.kubectl(&["wait", "--for=condition=Ready", "database/test-db", "--timeout=60s"]);

    let file =
        |demo: &Demo| demo.get(&["configmap", "test-db-config"])["data"]["pg_hba.conf"].clone();
    let before = file(demo);
    let edited = demo
        .console(&["edit", "configmap", "test-db-config"])
        .env("KUBE_EDITOR", "sed -i s/scram-sha-256/trust/")
        .output()
        .expect("kubectl runs");
    assert!(edited.status.success(), "{}", String::from_utf8_lossy(&edited.stderr));
    demo.until_said("EditReverted");
    until("the file as it was", || file(demo) == before);
    let events = demo.kubectl(&["get", "events", "--field-selector", "reason=EditReverted"]);
    assert!(events.contains("kubectl-edit"), "{events}");
    assert!(events.contains("pg_hba.conf"), "{events}");
}

/// A session of the application at the pod's address.
async fn session(demo: &Demo) -> tokio_postgres::Client {
    let pod = demo.get(&["pod", "test-db-0"]);
    let mut config = config(&secret(demo, "test-db-credentials", "password"));
    config.host(pod["status"]["podIP"].as_str().expect("an address"));
    let (client, connection) = config.connect(NoTls).await.expect("the Secret's password");
    tokio::spawn(connection);
    client
}

/// Another password in the Secret is in force without a restart, and the old one is not.
async fn rotation(demo: &Demo) {
    let pod = |demo: &Demo| {
        let pod = demo.get(&["pod", "test-db-0"]);
        let restarts = pod["status"]["containerStatuses"][0]["restartCount"].clone();
        (pod["metadata"]["uid"].clone(), restarts)
    };
    let before = pod(demo);
    // In a file, since arguments are seen by everybody.
    let file = tempfile::NamedTempFile::new().expect("a file");
    let patch = serde_json::json!({"stringData": {"password": "planted / marker % 4711"}});
    std::fs::write(file.path(), patch.to_string()).expect("it can be written");
    let path = file.path().to_string_lossy().into_owned();
    demo.kubectl(&["patch", "secret", "test-db-credentials", "--patch-file", &path]);
    until("the derived keys", || {
        secret(demo, "test-db-credentials", "uri").contains("planted%20%2F%20marker%20%25%204711")
    });
    let address = demo.get(&["pod", "test-db-0"])["status"]["podIP"].clone();
    let began = std::time::Instant::now();
    loop {
        let mut config = config("planted / marker % 4711");
        config.host(address.as_str().expect("an address"));
        if config.connect(NoTls).await.is_ok() {
            break;
        }
        assert!(began.elapsed() < console::PATIENCE, "the new password is not in force");
        // poll: a server that cannot tell us
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    demo.kubectl(&["wait", "--for=condition=Ready", "database/test-db", "--timeout=60s"]);
    assert_eq!(pod(demo), before, "nothing restarted");
}

/// Deletion ends, keeps the data, and a Database of the same name finds them again.
async fn deletion(demo: &mut Demo) {
    let client = session(demo).await;
    client
        .batch_execute("CREATE TABLE kept AS SELECT 'still here'::text AS what")
        .await
        .expect("done");
    drop(client);
    demo.kubectl(&["delete", "databases", "--all", "--timeout=60s"]);
    let children =
        ["get", "statefulsets,pods,services", "-l", "app.kubernetes.io/instance=test-db"];
    until("the children's end", || {
        demo.kubectl(&[&children[..], &["-o", "name"]].concat()).is_empty()
    });
    demo.until_said(" deleted");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/test-db.yaml");
    demo.kubectl(&["apply", "-f", manifest]);
    demo.kubectl(&["wait", "--for=condition=Ready", "database/test-db", "--timeout=170s"]);
    let client = session(demo).await;
    let row = client.query_one("SELECT what FROM kept", &[]).await.expect("the table is there");
    assert_eq!(row.get::<_, String>(0), "still here");
}

/// The passwords that the Secrets hold now, each with the name of its Secret.
fn passwords_of(demo: &Demo) -> Vec<(&'static str, String)> {
    let names = ["test-db-superuser", "test-db-replication", "test-db-credentials"];
    names.map(|name| (name, secret(demo, name, "password"))).into()
}

/// No password is shown where more people look than may read Secrets.
fn secrets_stay_secret(
    demo: &Demo,
    passwords: &[(&str, String)],
    command_lines: &BTreeSet<String>,
) {
    assert!(passwords.iter().all(|(_, password)| password.len() >= 16), "passwords were read");
    let kinds = ["databases", "events", "configmaps", "statefulsets", "pods", "services"];
    let mut places: Vec<(String, String)> = kinds
        .iter()
        .map(|kind| ((*kind).to_owned(), demo.kubectl(&["get", kind, "-A", "-o", "yaml"])))
        .collect();
    places.push(("the output and logs".to_owned(), demo.output()));
    let lines: Vec<&str> = command_lines.iter().map(String::as_str).collect();
    assert!(lines.iter().any(|line| line.contains("initdb")), "initdb was seen running");
    places.push(("arguments of processes".to_owned(), lines.join("\n")));
    for (place, text) in places {
        assert!(!text.is_empty(), "nothing was read of {place}");
        for (name, password) in passwords {
            let encoded = STANDARD.encode(password);
            let found = text.contains(password.as_str()) || text.contains(&encoded);
            assert!(!found, "the password of {name} stands in {place}");
        }
    }
}
