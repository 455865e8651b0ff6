//! A session with a server, simulated or real, as a client has it: login, statements, the server's words.

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// Logs in over a connection, or tells the server's refusal.
pub(crate) async fn connect<S>(
    stream: S,
    (user, password, database): (&str, &str, &str),
) -> Result<Client, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut config = Config::new();
    config.user(user).password(password).dbname(database);
    let connected = config.connect_raw(stream, NoTls).await;
    let (client, connection) = connected.map_err(|error| said(&error))?;
    tokio::spawn(connection);
    Ok(client)
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

/// SQLSTATE and words of the server where there are any.
fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(refusal) => format!("{} {}", refusal.code().code(), refusal.message()),
        None => error.to_string(),
    }
}
