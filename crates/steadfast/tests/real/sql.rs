//! Logs in as the application or the superuser would, with what the Secrets hold.

use kube::api::Api;
use runner::external::dial::Dialer;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::{Bench, PodDialer};

/// Who logs in.
#[derive(Clone, Copy)]
pub(crate) enum Who {
    Application,
    Superuser,
}

/// A value of a Secret, as text.
pub(crate) async fn secret(bench: &Bench, name: &str, key: &str) -> Option<String> {
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(bench.client.clone(), &bench.namespace);
    let found = secrets.get_opt(name).await.ok()??;
    String::from_utf8(found.data?.remove(key)?.0).ok()
}

/// A session through the client Service, or why there is none.
pub(crate) async fn login(bench: &Bench, name: &str, who: Who) -> Result<Client, String> {
    let (suffix, database) = match who {
        Who::Application => ("credentials", "mydb"),
        Who::Superuser => ("superuser", "postgres"),
    };
    let secret_name = format!("{name}-{suffix}");
    let user = match who {
        Who::Application => "admin".to_owned(),
        Who::Superuser => "postgres".to_owned(),
    };
    let password = secret(bench, &secret_name, "password").await;
    let password = password.ok_or_else(|| format!("no password in Secret {secret_name}"))?;
    login_as(bench, name, (&user, &password, database)).await
}

/// A session with these credentials.
pub(crate) async fn login_as(
    bench: &Bench,
    name: &str,
    (user, password, database): (&str, &str, &str),
) -> Result<Client, String> {
    let host = format!("{name}.{}.svc.cluster.local", bench.namespace);
    let dialer = PodDialer(bench.client.clone());
    let stream = dialer.dial(&host, 5432).await.map_err(|error| error.to_string())?;
    let mut config = Config::new();
    config.user(user).password(password).dbname(database);
    let connected = config.connect_raw(stream, NoTls).await;
    let (client, connection) = connected.map_err(|error| said(&error))?;
    tokio::spawn(connection);
    Ok(client)
}

/// Runs statements; the rows, columns joined by `|`, rows by `;`.
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

/// The server's words where there are any.
pub(crate) fn said(error: &tokio_postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), |db| format!("{}: {}", db.code().code(), db.message()))
}
