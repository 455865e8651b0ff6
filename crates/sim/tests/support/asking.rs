//! Questions to a server, modelled or real, and answers as comparable text.

use std::io::Write;

use sim::world::World;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// Password of the superuser in both.
pub(crate) const PASSWORD: &str = "secret";

/// Opens a session, with `pw-<user>` for a password.
pub(crate) async fn open<S>(stream: S, user: &str, database: &str) -> Result<Client, String>
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

/// A statement's answer.
pub(crate) async fn ask(client: &Client, sql: &str) -> String {
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

/// What may differ: numbers and names that each server makes for itself.
pub(crate) fn comparable(answer: &str) -> String {
    let mut text = String::new();
    let mut digits = String::new();
    let flush = |digits: &mut String, text: &mut String| {
        // Identifiers of data are nineteen digits long; shorter numbers are compared, but processes'.
        let process = text.ends_with("PID ");
        let unlike = if process { "<process>" } else { "<identifier>" };
        text.push_str(if process || digits.len() >= 18 { unlike } else { digits.as_str() });
        digits.clear();
    };
    for c in answer.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
        } else {
            if !digits.is_empty() {
                flush(&mut digits, &mut text);
            }
            text.push(c);
        }
    }
    if !digits.is_empty() {
        flush(&mut digits, &mut text);
    }
    text
}

/// Holds two lists of questions and answers against each other.
pub(crate) fn differences(real: &[(String, String)], model: &[(String, String)]) {
    let found: Vec<String> = real
        .iter()
        .zip(model)
        .filter(|(real, model)| comparable(&real.1) != comparable(&model.1))
        .map(|(real, model)| format!("{}\n  real:  {}\n  model: {}", real.0, real.1, model.1))
        .collect();
    assert_eq!(real.len(), model.len());
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
}

fn set(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| value == "1")
}

/// Whether nothing of this machine may be used.
pub(crate) fn hermetic() -> bool {
    set("STEADFAST_HERMETIC")
}

/// Says loudly that a model was not compared, where that is allowed.
pub(crate) fn skipped(what: &str) {
    assert!(hermetic() || !set("STEADFAST_REQUIRE_ALL"), "PostgreSQL must be installed");
    // Standard error itself: the harness hides what a passing test prints.
    let _ = writeln!(std::io::stderr(), "SKIPPED: the {what} was not compared with a real server");
}

/// What `look` makes of a world of its own under virtual time.
pub(crate) fn in_a_world<T>(look: impl AsyncFnOnce(&World) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let world = World::new(1);
        let driver = world.spawn();
        let answer = look(&world).await;
        driver.abort();
        answer
    })
}
