//! Logs in as the application or the superuser would, with what the Secrets hold.

use kube::api::Api;
use runner::external::dial::Dialer;
use tokio_postgres::Client;

pub(crate) use super::session::{ask, connect};
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
    let (suffix, user, database) = match who {
        Who::Application => ("credentials", "admin", "mydb"),
        Who::Superuser => ("superuser", "postgres", "postgres"),
    };
    let secret_name = format!("{name}-{suffix}");
    let password = secret(bench, &secret_name, "password").await;
    let password = password.ok_or_else(|| format!("no password in Secret {secret_name}"))?;
    login_as(bench, name, (user, &password, database)).await
}

/// A session with these credentials: user, password, database.
pub(crate) async fn login_as(
    bench: &Bench,
    name: &str,
    credentials: (&str, &str, &str),
) -> Result<Client, String> {
    let host = format!("{name}.{}.svc.cluster.local", bench.namespace);
    let dialer = PodDialer(bench.client.clone());
    let stream = dialer.dial(&host, 5432).await.map_err(|error| error.to_string())?;
    connect(stream, credentials).await
}
