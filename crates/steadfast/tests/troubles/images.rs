//! Troubles with images.

use std::convert::Infallible;
use std::sync::OnceLock;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::json;
use testbed::Cluster;
use tokio::net::TcpListener;

use super::real::trouble::{IN_THE_MANIFEST, Trouble, play, with};

#[tokio::test(flavor = "multi_thread")]
async fn image_missing() {
    play(Trouble {
        name: "image missing",
        spec: |_| with("image", json!("postgres:15.no-such-tag")),
        reason: "ImagePullFailed",
        words: &["postgres:15.no-such-tag"],
        ..IN_THE_MANIFEST
    })
    .await;
}

/// An image of a registry that lets nobody in.
static PRIVATE_IMAGE: OnceLock<String> = OnceLock::new();

/// Starts that registry where the nodes can reach it.
async fn private_registry() {
    let cluster = Cluster::shared().await.expect("the cluster starts");
    let listener = TcpListener::bind((cluster.machine(), 0)).await.expect("a port");
    let host = listener.local_addr().expect("bound").to_string();
    cluster.trust_plain_registry(&host).expect("the setting is written");
    PRIVATE_IMAGE.set(format!("{host}/private/postgres:15")).expect("set once");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = hyper::service::service_fn(async |_: Request<Incoming>| {
                let mut answer = Response::new(Full::<Bytes>::default());
                *answer.status_mut() = StatusCode::UNAUTHORIZED;
                let challenge = http::HeaderValue::from_static("Basic realm=\"private\"");
                answer.headers_mut().insert(http::header::WWW_AUTHENTICATE, challenge);
                Ok::<_, Infallible>(answer)
            });
            let served = hyper::server::conn::http1::Builder::new();
            // The asker may leave at any time.
            tokio::spawn(served.serve_connection(TokioIo::new(stream), answer));
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn image_pull_denied() {
    play(Trouble {
        name: "image pull denied",
        arrange: |_| Box::pin(private_registry()),
        spec: |_| with("image", json!(PRIVATE_IMAGE.get().expect("the registry runs"))),
        reason: "ImagePullFailed",
        words: &["/private/postgres:15", "no basic auth credentials"],
        ..IN_THE_MANIFEST
    })
    .await;
}
