//! The same statements to a primary and its standby, modelled and real; the answers are compared. And
//! the last words of `pg_basebackup`.
//!
//! Needs an installed PostgreSQL, as `postgres_real` does.

#[path = "support/asking.rs"]
mod asking;
#[path = "support/real_postgres.rs"]
mod real_postgres;
#[path = "support/replicated.rs"]
mod replicated;

use std::collections::BTreeMap;
use std::time::Duration;

use asking::{PASSWORD, ask, comparable, differences, open, skipped};
use real_postgres::Real;
use sim::world::World;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::Client;

const SCRIPT: &str = include_str!("postgres/standby.txt");
/// What a caught-up standby is recognised by.
const CAUGHT_UP: &str = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND \
                         replay_lsn = pg_current_wal_lsn()";

async fn until_caught_up(primary: &Client) {
    let begun = tokio::time::Instant::now();
    while !ask(primary, CAUGHT_UP).await.contains("row 1") {
        assert!(begun.elapsed() < Duration::from_secs(60), "the standby does not catch up");
        tokio::time::sleep(Duration::from_millis(50)).await; // poll: the stream
    }
}

/// Runs the script; `dial` connects to the primary (`P`) or its standby (`S`).
async fn run<S, F>(dial: impl Fn(bool) -> F) -> Vec<(String, String)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = S>,
{
    let watcher = open(dial(true).await, "postgres", "postgres").await.expect("a primary");
    let mut sessions: BTreeMap<String, Client> = BTreeMap::new();
    let mut answers = Vec::new();
    for line in SCRIPT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line == "wait" {
            until_caught_up(&watcher).await;
            continue;
        }
        let mut words = line.splitn(3, ' ');
        let (side, who) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let key = format!("{side} {who}");
        if !sessions.contains_key(&key) {
            let (user, database) = who.split_once('@').expect("user@database");
            match open(dial(side == "P").await, user, database).await {
                Ok(client) => drop(sessions.insert(key.clone(), client)),
                Err(error) => {
                    answers.push((line.to_owned(), error));
                    continue;
                }
            }
        }
        let answer = ask(&sessions[&key], words.next().unwrap_or("")).await;
        answers.push((line.to_owned(), answer));
    }
    answers
}

/// The model's primary and standby, and what `look` makes of them.
fn modelled<T>(major: u32, look: impl AsyncFnOnce(&World) -> T) -> T {
    asking::in_a_world(async |world| {
        let image = format!("postgres:{major}");
        world.apply(&replicated::set(1, &image, "slot=used")).expect("applied");
        replicated::settled(world, 1).await;
        let role = "CREATE ROLE repl LOGIN REPLICATION PASSWORD 'pw-repl'";
        replicated::ask(world, 0, role).await;
        look(world).await
    })
}

async fn model_answers(world: &World, major: u32) -> Vec<(String, String)> {
    let slot = "SELECT pg_create_physical_replication_slot('used')";
    replicated::ask(world, 0, slot).await;
    let image = format!("postgres:{major}");
    world.apply(&replicated::set(2, &image, "slot=used")).expect("applied");
    replicated::settled(world, 2).await;
    world.run_for(Duration::from_secs(2)).await;
    run(|primary| async move {
        let address = replicated::address(world, usize::from(!primary));
        world.dial(&address, 5432).expect("the model listens")
    })
    .await
}

#[test]
fn a_modelled_standby_answers_like_a_real_one() {
    let Some(primary) = Real::unless_hermetic(PASSWORD) else { return skipped("standby model") };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let major = primary.major;
    let expected = runtime.block_on(async {
        let port = primary.port;
        let connect =
            |port: u16| async move { tokio::net::TcpStream::connect(("127.0.0.1", port)).await };
        let client = loop {
            let stream = connect(port).await.expect("the real server listens");
            match open(stream, "postgres", "postgres").await {
                Ok(client) => break client,
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await, // poll: the server
            }
        };
        for sql in [
            "CREATE ROLE repl LOGIN REPLICATION PASSWORD 'pw-repl'",
            "SELECT pg_create_physical_replication_slot('used')",
        ] {
            ask(&client, sql).await;
        }
        let standby = primary.standby("pw-repl", "used", "db-1");
        until_caught_up(&client).await;
        let ports = (port, standby.port);
        run(|first| async move {
            let port = if first { ports.0 } else { ports.1 };
            connect(port).await.expect("the real server listens")
        })
        .await
    });
    let found = modelled(major, async |world| model_answers(world, major).await);
    differences(&expected, &found);
}

/// Options of the program, and whether the server is there.
const COPIES: [(&str, &str, bool); 7] = [
    ("a wrong password", "user=repl password=bad", true),
    ("no password", "user=repl", true),
    ("nobody's password", "user=nobody password=bad", true),
    ("a role that may not stream", "user=plain password=pw-plain", true),
    ("a role that may not log in", "user=mute password=pw-mute", true),
    ("no such slot", "user=repl password=pw-repl", true),
    ("no server", "user=repl password=pw-repl", false),
];

/// Host, address and port are each side's own.
fn words(text: &str) -> String {
    let mut shown = Vec::new();
    for line in text.lines() {
        let line = match (line.find("connection to server at "), line.find(" failed: ")) {
            (Some(begin), Some(end)) => format!("{}<server>{}", &line[..begin], &line[end..]),
            _ => line.to_owned(),
        };
        let line = match line.find("directory \"") {
            Some(at) => format!("{}<folder>", &line[..at]),
            None => line,
        };
        shown.push(line);
    }
    comparable(&shown.join("\n"))
}

const ROLES: [&str; 2] = [
    "CREATE ROLE plain LOGIN PASSWORD 'pw-plain'",
    "CREATE ROLE mute REPLICATION PASSWORD 'pw-mute'",
];

#[test]
fn a_copy_fails_with_the_programs_words() {
    let Some(primary) = Real::unless_hermetic(PASSWORD) else { return skipped("base backup") };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        loop {
            let stream = tokio::net::TcpStream::connect(("127.0.0.1", primary.port)).await;
            let stream = stream.expect("the real server listens");
            let Ok(client) = open(stream, "postgres", "postgres").await else {
                tokio::time::sleep(Duration::from_millis(100)).await; // poll: the server
                continue;
            };
            ask(&client, "CREATE ROLE repl LOGIN REPLICATION PASSWORD 'pw-repl'").await;
            for sql in ROLES {
                ask(&client, sql).await;
            }
            return;
        }
    });
    let real: Vec<(String, String)> = COPIES
        .iter()
        .map(|(name, to, there)| {
            let port = if *there { primary.port } else { real_postgres::free_port() };
            ((*name).to_owned(), words(&primary.copy(&format!("host=127.0.0.1 port={port} {to}"))))
        })
        .collect();
    let found = modelled(primary.major, async |world| {
        for sql in ROLES {
            replicated::ask(world, 0, sql).await;
        }
        let mut found = Vec::new();
        for (name, to, there) in COPIES {
            let port = if there { 5432 } else { 5433 };
            let from = format!("host=db-0.db.default.svc port={port} {to}");
            found.push((name.to_owned(), words(&replicated::copy(world, &from).await)));
        }
        found
    });
    differences(&real, &found);
}
