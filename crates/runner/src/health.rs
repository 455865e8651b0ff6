//! `/healthz`, `/readyz` and `/metrics`.
//!
//! Alive means that every loop runs; ready means that the first lists are in. Must not ask the
//! API server anything: its outage is no reason to replace this process.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    ready: Arc<AtomicBool>,
    dead: Arc<AtomicBool>,
}

impl Health {
    /// The first lists are in.
    pub fn ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
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
        self.is_alive() && self.ready.load(Ordering::Relaxed)
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
            (StatusCode::SERVICE_UNAVAILABLE, "not ok\n".to_owned())
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
        health.ready();
        assert_eq!(page("/readyz", &health, &metrics).0, StatusCode::OK);
        health.dead();
        assert_eq!(page("/healthz", &health, &metrics).0, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(page("/readyz", &health, &metrics).0, StatusCode::SERVICE_UNAVAILABLE);
    }
}
