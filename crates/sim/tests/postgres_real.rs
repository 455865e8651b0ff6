//! The same statements to the PostgreSQL model and to a real server; the answers are compared.
//!
//! Needs an installed PostgreSQL. Without one the test fails with `STEADFAST_REQUIRE_ALL=1`, as in CI,
//! and says so loudly elsewhere; `STEADFAST_HERMETIC=1` leaves it out.

#[path = "support/asking.rs"]
mod asking;
#[path = "support/real_postgres.rs"]
mod real_postgres;

use std::collections::BTreeMap;
use std::time::Duration;

use asking::{PASSWORD, ask, differences, open, skipped};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::Client;

/// A session and a statement. Sessions are opened when they are first named, as `user@database`
/// with `pw-<user>` for a password; `-` closes one.
const SCRIPT: &str = include_str!("postgres/statements.txt");

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
    asking::in_a_world(async |world| {
        world.apply(&pod(major)).expect("applied");
        world.run_for(Duration::from_secs(60)).await;
        run(|| async { world.forward("default", "db", 5432).expect("the model listens") }).await
    })
}

#[test]
fn the_model_answers_like_a_real_server() {
    let Some(real) = real_postgres::Real::unless_hermetic(PASSWORD) else {
        return skipped("PostgreSQL model");
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
    differences(&expected, &found);
}
