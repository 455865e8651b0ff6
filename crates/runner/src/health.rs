//! `/healthz`, `/readyz` and `/metrics`.
//!
//! Alive means that every loop runs; ready means that the first lists are in. Must not ask the
//! API server anything: its outage is no reason to replace this process.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// What the process says of itself.
#[derive(Clone, Default)]
pub struct Health {
    /// Kinds that each controller waits for; nothing before the first has said so.
    waits: Arc<Mutex<Option<Waits>>>,
    dead: Arc<AtomicBool>,
}

type Waits = BTreeMap<&'static str, Vec<&'static str>>;

impl Health {
    fn lock(&self) -> MutexGuard<'_, Option<Waits>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A controller waits for the first lists of these kinds; it serves when there are none.
    pub fn waits(&self, controller: &'static str, kinds: Vec<&'static str>) {
        self.lock().get_or_insert_default().insert(controller, kinds);
    }

    /// A loop ended that must not.
    pub fn dead(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    /// Whether the process should be kept.
    pub fn is_alive(&self) -> bool {
        !self.dead.load(Ordering::Relaxed)
    }

    /// Whether it serves.
    pub fn is_ready(&self) -> bool {
        let serves = |waits: &Waits| waits.values().all(Vec::is_empty);
        self.is_alive() && self.lock().as_ref().is_some_and(serves)
    }

    /// What is waited for, in words; empty when there is nothing to say.
    pub fn waited_for(&self) -> String {
        let waits = self.lock();
        let open = waits.iter().flatten().filter(|(_, kinds)| !kinds.is_empty());
        open.map(|(controller, kinds)| {
            format!("{controller} waits for the first list of {}\n", kinds.join(", "))
        })
        .collect()
    }
}

/// Serves on `address` until `stop`.
///
/// # Errors
/// When the address cannot be bound.
pub async fn serve(
    address: SocketAddr,
    health: Health,
    metrics: Metrics,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "health connection refused");
                    // Out of file handles, say: looking again at once would only burn the processor.
                    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                    continue;
                }
            },
        };
        let (health, metrics) = (health.clone(), metrics.clone());
        tokio::spawn(async move {
            let service =
                service_fn(move |request| answer(request, health.clone(), metrics.clone()));
            // A probe that hangs up early is its own affair.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    health: Health,
    metrics: Metrics,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, text) = page(request.uri().path(), &health, &metrics);
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    Ok(response)
}

fn page(path: &str, health: &Health, metrics: &Metrics) -> (StatusCode, String) {
    let verdict = |good: bool| {
        if good {
            (StatusCode::OK, "ok\n".to_owned())
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ok\n{}", health.waited_for()))
        }
    };
    match path {
        "/healthz" => verdict(health.is_alive()),
        "/readyz" => verdict(health.is_ready()),
        "/metrics" => (StatusCode::OK, metrics.text()),
        _ => (StatusCode::NOT_FOUND, "paths: /healthz /readyz /metrics\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_comes_after_the_first_lists_and_goes_with_a_dead_loop() {
        let (health, metrics) = (Health::default(), Metrics::new());
        assert_eq!(page("/healthz", &health, &metrics).0, StatusCode::OK);
        assert_eq!(page("/readyz", &health, &metrics).0, StatusCode::SERVICE_UNAVAILABLE);
        health.waits("database", vec!["Database", "Pod"]);
        let (status, text) = page("/readyz", &health, &metrics);
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(text.contains("database waits for the first list of Database, Pod"), "{text}");
        health.waits("database", Vec::new());
        assert_eq!(page("/readyz", &health, &metrics).0, StatusCode::OK);
        health.dead();
        assert_eq!(page("/healthz", &health, &metrics).0, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(page("/readyz", &health, &metrics).0, StatusCode::SERVICE_UNAVAILABLE);
    }
}
