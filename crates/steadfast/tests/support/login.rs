//! Logs into the simulated server as an application or a user with psql would.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sim::world::World;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// The bytes of a Secret's key, as text; empty when there is none.
pub(crate) fn secret(world: &World, name: &str, key: &str) -> String {
    let secret = world.get("Secret", "default", name).unwrap_or_default();
    let encoded = secret["data"][key].as_str().unwrap_or_default();
    String::from_utf8(STANDARD.decode(encoded).unwrap_or_default()).unwrap_or_default()
}

/// Encodes a value for a Secret.
pub(crate) fn encoded(value: &str) -> String {
    STANDARD.encode(value)
}

/// A session through the client Service, or the server's refusal.
pub(crate) async fn login(
    world: &World,
    service: &str,
    (user, password, database): (&str, &str, &str),
) -> Result<Client, String> {
    let host = format!("{service}.default.svc.cluster.local");
    let stream = world.dial(&host, 5432).map_err(|error| error.to_string())?;
    let mut config = Config::new();
    config.user(user).password(password).dbname(database);
    let connected = config.connect_raw(stream, NoTls).await;
    let (client, connection) = connected.map_err(|error| said(&error))?;
    tokio::spawn(connection);
    Ok(client)
}

/// A session of the exercise's application with the password that its Secret holds.
pub(crate) async fn application(world: &World) -> Result<Client, String> {
    let password = secret(world, "test-db-credentials", "password");
    login(world, "test-db", ("admin", &password, "mydb")).await
}

/// A session of the superuser with the password that the Secret holds.
pub(crate) async fn superuser(world: &World) -> Result<Client, String> {
    let password = secret(world, "test-db-superuser", "password");
    login(world, "test-db", ("postgres", &password, "postgres")).await
}

/// Runs statements; answers the rows, columns joined by `|`, rows by `;`.
pub(crate) async fn ask(client: &Client, sql: &str) -> Result<String, String> {
    let messages = client.simple_query(sql).await.map_err(|error| said(&error))?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let cells = (0..row.len()).map(|i| row.get(i).unwrap_or("NULL"));
            Some(cells.collect::<Vec<_>>().join("|"))
        }
        _ => None,
    });
    Ok(rows.collect::<Vec<_>>().join(";"))
}

/// Writes rows that must never be lost.
pub(crate) async fn write_rows(world: &World) {
    let client = application(world).await.expect("the application logs in");
    let sql = "CREATE TABLE kept (id int PRIMARY KEY, word text); \
               INSERT INTO kept VALUES (1, 'one'), (2, 'two')";
    ask(&client, sql).await.expect("the application writes");
}

/// The rows that [`write_rows`] wrote, as found now.
pub(crate) async fn rows(world: &World) -> Result<String, String> {
    let client = application(world).await?;
    ask(&client, "SELECT * FROM kept ORDER BY id").await
}

/// What [`rows`] must find.
pub(crate) const ROWS: &str = "1|one;2|two";

fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(refusal) => format!("{} {}", refusal.code().code(), refusal.message()),
        None => error.to_string(),
    }
}
