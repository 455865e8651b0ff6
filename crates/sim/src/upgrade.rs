//! From a request to a websocket, over HTTP and in process.
//!
//! Must not know what is said over it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::reply::{self, Broken, ReplyBody};
use crate::status::Failure;

/// A websocket, by whatever way it came.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// What is said over a websocket, once it is open.
pub(crate) type Talk = Box<dyn FnOnce(Socket) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Whether the client offers a subprotocol.
pub(crate) fn offers(parts: &Parts, protocol: &str) -> bool {
    let offered = parts.headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    offered
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.split(',').any(|one| one.trim() == protocol))
}

/// Answers that the protocol is switched to `spoken`, and talks in a task of its own. `upgrade` is none
/// in process, where there is no connection to upgrade: one is made, and hyper talks to itself.
pub(crate) async fn switch(
    mut parts: Parts,
    upgrade: Option<OnUpgrade>,
    spoken: &'static str,
    talk: Talk,
) -> Result<Response<ReplyBody>, Broken> {
    match upgrade {
        Some(upgrade) => Ok(accept(&parts, upgrade, spoken, talk)),
        None => {
            parts.headers.entry(header::HOST).or_insert(HeaderValue::from_static("simulated"));
            bridge(parts, spoken, talk).await
        }
    }
}

fn accept(
    parts: &Parts,
    upgrade: OnUpgrade,
    spoken: &'static str,
    talk: Talk,
) -> Response<ReplyBody> {
    let Some(key) = parts.headers.get(header::SEC_WEBSOCKET_KEY) else {
        return reply::refusal(&Failure::bad_request(
            "unable to upgrade: only websockets are simulated",
        ));
    };
    let accept = derive_accept_key(key.as_bytes());
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            let io = TokioIo::new(upgraded);
            talk(WebSocketStream::from_raw_socket(io, Role::Server, None).await).await;
        }
    });
    let mut response = reply::text("");
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.clear();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(spoken));
    if let Ok(value) = HeaderValue::from_str(&accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, value);
    }
    response
}

async fn bridge(
    parts: Parts,
    spoken: &'static str,
    talk: Talk,
) -> Result<Response<ReplyBody>, Broken> {
    let (client, server) = tokio::io::duplex(64 * 1024);
    // The one request of this connection takes it.
    let talk = Arc::new(Mutex::new(Some(talk)));
    tokio::spawn(async move {
        let answer =
            hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
                let upgrade = hyper::upgrade::on(&mut request);
                let (parts, _) = request.into_parts();
                let taken = talk.lock().unwrap_or_else(PoisonError::into_inner).take();
                let response = match taken {
                    Some(talk) => Ok(accept(&parts, upgrade, spoken, talk)),
                    None => Err(Broken("a second request on an upgraded connection")),
                };
                async move { response }
            });
        // The far end going away ends the talk, which is what it wants.
        let _ = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(server), answer)
            .with_upgrades()
            .await;
    });
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(client))
        .await
        .map_err(|_| Broken("the handshake of an upgrade failed"))?;
    tokio::spawn(connection.with_upgrades());
    let request = http::Request::from_parts(parts, http_body_util::Empty::<Bytes>::new());
    let response = sender
        .send_request(request)
        .await
        .map_err(|_| Broken("the request of an upgrade failed"))?;
    Ok(response
        .map(|body| body.map_err(|_| Broken("the body of an upgrade failed")).boxed_unsync()))
}
