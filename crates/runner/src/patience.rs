//! A client for lists and watches that does not wait for ever: neither for an answer to begin, nor
//! for the next piece of it.
//!
//! A connection that was cut without a reset says nothing for good (fault catalogue G-13). Must not
//! look into what is sent.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use kube::client::Body;

/// How long nothing may come. The API server sends a bookmark each minute, so this is two that
/// stayed away.
pub const SILENCE: Duration = Duration::from_secs(150);

/// Nothing came for [`SILENCE`].
#[derive(Debug, thiserror::Error)]
#[error("nothing was heard for {} s", SILENCE.as_secs())]
struct Silent;

/// The same client, for answers that come in pieces. An answer must begin within `head`.
pub fn patient(client: &kube::Client, head: Duration) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let client = client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let answer = tokio::time::timeout(head, client.send(request)).await;
            let response: Response<Body> = answer.map_err(|_| tower::BoxError::from(Silent))??;
            Ok::<_, tower::BoxError>(response.map(heard))
        }
    });
    kube::Client::new(service, namespace)
}

type Piece = Result<Frame<Bytes>, tower::BoxError>;

/// The body, with an error in place of a piece that does not come.
fn heard(body: Body) -> StreamBody<impl futures::Stream<Item = Piece> + Send> {
    let pieces = body.into_data_stream();
    StreamBody::new(stream::unfold(Some(pieces), |pieces| async move {
        let mut pieces = pieces?;
        match tokio::time::timeout(SILENCE, pieces.next()).await {
            Ok(Some(Ok(piece))) => Some((Ok(Frame::data(piece)), Some(pieces))),
            Ok(Some(Err(error))) => Some((Err(error.into()), None)),
            Ok(None) => None,
            Err(_) => Some((Err(Silent.into()), None)),
        }
    }))
}
