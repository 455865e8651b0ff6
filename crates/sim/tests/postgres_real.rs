//! The same statements to the PostgreSQL model and to a real server; the answers are compared.
//!
//! Needs an installed PostgreSQL. Without one the test fails with `STEADFAST_REQUIRE_ALL=1`, as in CI,
//! and says so loudly elsewhere; `STEADFAST_HERMETIC=1` leaves it out.

#[path = "support/real_postgres.rs"]
mod real_postgres;

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use sim::world::World;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// Password of the superuser in both.
const PASSWORD: &str = "secret";

/// A session and a statement. Sessions are opened when they are first named, as `user@database`
/// with `pw-<user>` for a password; `-` closes one.
const SCRIPT: &str = include_str!("postgres/statements.txt");

async fn open<S>(stream: S, user: &str, database: &str) -> Result<Client, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let password = if user == "postgres" { PASSWORD.to_owned() } else { format!("pw-{user}") };
    let mut config = Config::new();
    config.user(user).password(password).dbname(database).application_name("steadfast");
    config.options("-c search_path=pg_catalog -c statement_timeout=5000 -c lock_timeout=5000");
    let (client, connection) = config.connect_raw(stream, NoTls).await.map_err(|e| said(&e))?;
    tokio::spawn(connection);
    Ok(client)
}

fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(refusal) => {
            let mut text =
                format!("{} {}: {}", refusal.severity(), refusal.code().code(), refusal.message());
            for (name, part) in [("detail", refusal.detail()), ("hint", refusal.hint())] {
                if let Some(part) = part {
                    text.push_str(&format!(" [{name}: {part}]"));
                }
            }
            text
        }
        None => format!("lost: {error}"),
    }
}

async fn ask(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Err(error) => said(&error),
        Ok(messages) => {
            let shown: Vec<String> = messages.iter().map(shown).collect();
            shown.join("; ")
        }
    }
}

fn shown(message: &SimpleQueryMessage) -> String {
    match message {
        SimpleQueryMessage::RowDescription(columns) => {
            let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
            format!("columns {}", names.join(","))
        }
        SimpleQueryMessage::Row(row) => {
            let cells: Vec<&str> =
                (0..row.len()).map(|index| row.get(index).unwrap_or("NULL")).collect();
            format!("row {}", cells.join(","))
        }
        SimpleQueryMessage::CommandComplete(count) => format!("done {count}"),
        _ => "other".to_owned(),
    }
}

/// Runs the script; `dial` makes connections.
async fn run<S, F>(dial: impl Fn() -> F) -> Vec<(String, String)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = S>,
{
    let mut sessions: BTreeMap<String, Client> = BTreeMap::new();
    let mut answers = Vec::new();
    for line in SCRIPT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (who, sql) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(who) = who.strip_prefix('-') {
            sessions.remove(who);
            // The server notices the end of a session a moment later.
            tokio::time::sleep(Duration::from_millis(200)).await; // poll: the server that is starting
            continue;
        }
        if !sessions.contains_key(who) {
            let (user, database) = who.split_once('@').expect("user@database");
            match open(dial().await, user, database).await {
                Ok(client) => drop(sessions.insert(who.to_owned(), client)),
                Err(error) => {
                    answers.push((line.to_owned(), error));
                    continue;
                }
            }
        }
        let answer = ask(&sessions[who], sql).await;
        answers.push((line.to_owned(), answer));
    }
    answers
}

/// A model server of this major version, with the superuser's password.
fn pod(major: u32) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: db, namespace: default}}
spec:
  automountServiceAccountToken: false
  containers:
  - name: postgres
    image: postgres:{major}
    env:
    - {{name: POSTGRES_PASSWORD, value: {PASSWORD}}}
    - {{name: POSTGRES_INITDB_ARGS, value: --auth-host=scram-sha-256}}
"
    )
}

fn modelled(major: u32) -> Vec<(String, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let world = World::new(1);
        let driver = world.spawn();
        world.apply(&pod(major)).expect("applied");
        world.run_for(Duration::from_secs(60)).await;
        let dial = || async { world.forward("default", "db", 5432).expect("the model listens") };
        let answers = run(dial).await;
        driver.abort();
        answers
    })
}

/// What may differ: numbers and names that each server makes for itself.
fn comparable(answer: &str) -> String {
    let mut text = String::new();
    let mut digits = String::new();
    let flush = |digits: &mut String, text: &mut String| {
        // Identifiers of data are nineteen digits long; shorter numbers are compared.
        text.push_str(if digits.len() >= 18 { "<identifier>" } else { digits.as_str() });
        digits.clear();
    };
    for c in answer.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
        } else {
            flush(&mut digits, &mut text);
            text.push(c);
        }
    }
    flush(&mut digits, &mut text);
    text
}

#[test]
fn the_model_answers_like_a_real_server() {
    let set = |name: &str| std::env::var(name).is_ok_and(|value| value == "1");
    let hermetic = set("STEADFAST_HERMETIC");
    let Some(real) = (if hermetic { None } else { real_postgres::Real::start(PASSWORD) }) else {
        assert!(hermetic || !set("STEADFAST_REQUIRE_ALL"), "PostgreSQL must be installed");
        // Standard error itself: the harness hides what a passing test prints.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: the PostgreSQL model was not compared with a real server"
        );
        return;
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let port = real.port;
    let dial = || async move {
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("the real server listens")
    };
    let expected = runtime.block_on(async {
        while open(dial().await, "postgres", "postgres").await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await; // poll: the server that is stopping
        }
        run(dial).await
    });
    let found = modelled(real.major);
    let differences: Vec<String> = expected
        .iter()
        .zip(&found)
        .filter(|(real, model)| comparable(&real.1) != comparable(&model.1))
        .map(|(real, model)| format!("{}\n  real:  {}\n  model: {}", real.0, real.1, model.1))
        .collect();
    assert_eq!(expected.len(), found.len());
    assert!(
        differences.is_empty(),
        "{} differences\n{}",
        differences.len(),
        differences.join("\n")
    );
}
