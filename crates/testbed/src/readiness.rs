//! Waiting until a control plane serves, by asking it.

use std::future::Future;
use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::{Api, Client};
use tokio::time::{Instant, sleep};

/// Time between two looks. Nothing announces readiness, so it has to be asked for.
const INTERVAL: Duration = Duration::from_millis(40);

/// Whether the API server says of itself that it is ready, role bootstrap included.
pub(crate) async fn api_server_ready(client: &Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
    client.request_text(request).await.is_ok_and(|answer| answer == "ok")
}

/// Whether the namespace is there.
pub(crate) async fn namespace_exists(client: &Client, name: &str) -> bool {
    matches!(Api::<Namespace>::all(client.clone()).get_opt(name).await, Ok(Some(_)))
}

/// Whether pods can be created in the namespace: they need its default service account.
pub(crate) async fn service_account_exists(client: &Client, namespace: &str) -> bool {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    matches!(accounts.get_opt("default").await, Ok(Some(_)))
}

/// Asks until the answer is yes.
///
/// # Errors
/// `alive` fails (a program has ended), or the deadline passes.
pub(crate) async fn wait_for<Answer: Future<Output = bool>>(
    what: &str,
    deadline: Instant,
    mut alive: impl FnMut() -> Result<()>,
    mut ask: impl FnMut() -> Answer,
) -> Result<()> {
    loop {
        // An answer that never comes must not outlive the deadline.
        if tokio::time::timeout_at(deadline, ask()).await == Ok(true) {
            return Ok(());
        }
        alive()?;
        if Instant::now() >= deadline {
            bail!("waited too long for {what}");
        }
        sleep(INTERVAL).await;
    }
}
