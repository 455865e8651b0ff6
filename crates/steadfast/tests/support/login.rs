//! Logs into the simulated server as an application or a user with psql would.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sim::world::World;
use tokio_postgres::Client;

pub(crate) use super::session::ask;
use super::session::connect;

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
    credentials: (&str, &str, &str),
) -> Result<Client, String> {
    let host = format!("{service}.default.svc.cluster.local");
    let stream = world.dial(&host, 5432).map_err(|error| error.to_string())?;
    connect(stream, credentials).await
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
