//! Port-forward over a websocket: as kube's client speaks it (`v4.channel.k8s.io`), or, for
//! kubectl, as a tunnel ([`crate::tunnel`]).
//!
//! Each frame is a channel byte and payload: two channels a port, data and error; the first frame
//! of each carries the port as little-endian 16 bits.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use http::Response;
use http::request::Parts;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::cluster::Cluster;
use crate::reply::{self, Broken, ReplyBody};
use crate::request::Call;
use crate::status::Failure;
use crate::store::Key;
use crate::tunnel;
use crate::upgrade::{self, Talk};

/// A two-way byte stream.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// What connecting gives.
pub type Dialed = Pin<Box<dyn Future<Output = std::io::Result<Box<dyn Connection>>> + Send>>;

/// Reaches the ports of pods.
pub trait Dial: Send + Sync {
    /// Connects to `port` of `pod`.
    fn dial(&self, pod: &Value, port: u16) -> Dialed;
}

/// Reaches pods by TCP at their `status.podIP`.
pub struct TcpDial;

impl Dial for TcpDial {
    fn dial(&self, pod: &Value, port: u16) -> Dialed {
        let address = pod["status"]["podIP"].as_str().unwrap_or("").to_owned();
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect((address.as_str(), port)).await?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

/// Pod and ports of a port-forward request.
pub(crate) struct Forward {
    key: Key,
    ports: Vec<u16>,
}

/// What a call wants to forward; none when it is no port-forward.
pub(crate) fn forward_target(call: &Call) -> Option<Forward> {
    let place = call.place.as_ref()?;
    if place.plural != "pods" || place.subresource != "portforward" || !place.group.is_empty() {
        return None;
    }
    let ports = call.parameter("ports").split(',').filter_map(|port| port.parse().ok()).collect();
    Some(Forward { key: Key::new("", "pods", &place.namespace, &place.name), ports })
}

/// Answers a port-forward request and serves it in a task of its own.
pub(crate) async fn forward(
    cluster: &Cluster,
    dial: Option<Arc<dyn Dial>>,
    target: Forward,
    parts: Parts,
    taken: Option<hyper::upgrade::OnUpgrade>,
) -> Result<Response<ReplyBody>, Broken> {
    let found = cluster.with(|core| {
        let kind = core.kinds.get("", "pods").ok_or_else(Failure::no_such_resource)?;
        core.read(&kind, &target.key, 0)
    });
    let pod = match found {
        Ok(pod) => pod,
        Err(failure) => return Ok(reply::refusal(&failure)),
    };
    let dial = dial.unwrap_or_else(|| Arc::new(TcpDial));
    let tunnelled = upgrade::offers(&parts, tunnel::PROTOCOL);
    let spoken = if tunnelled { tunnel::PROTOCOL } else { "v4.channel.k8s.io" };
    let ports = target.ports;
    let talk: Talk = Box::new(move |socket| {
        Box::pin(async move {
            if tunnelled {
                tunnel::serve(socket, pod, dial).await;
            } else {
                serve(socket, &pod, &ports, &*dial).await;
            }
        })
    });
    upgrade::switch(parts, taken, spoken, talk).await
}

/// Frames on their way to the client: channel and payload.
type Frames = mpsc::Sender<Vec<u8>>;

async fn serve<S>(socket: WebSocketStream<S>, pod: &Value, ports: &[u16], dial: &dyn Dial)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sink, mut source) = socket.split();
    let (frames, mut outgoing) = mpsc::channel::<Vec<u8>>(64);
    let mut inward: BTreeMap<u8, WriteHalf<Box<dyn Connection>>> = BTreeMap::new();
    for (number, port) in ports.iter().enumerate() {
        let Ok(channel) = u8::try_from(number * 2) else { break };
        for channel in [channel, channel + 1] {
            let [low, high] = port.to_le_bytes();
            let _ = frames.send(vec![channel, low, high]).await;
        }
        match dial.dial(pod, *port).await {
            Ok(connection) => {
                let (read, write) = tokio::io::split(connection);
                inward.insert(channel, write);
                tokio::spawn(pump(read, channel, frames.clone()));
            }
            Err(error) => {
                let mut frame = vec![channel + 1];
                frame.extend(format!("error forwarding port {port}: {error}").into_bytes());
                let _ = frames.send(frame).await;
            }
        }
    }
    drop(frames);
    loop {
        tokio::select! {
            biased;
            frame = outgoing.recv() => match frame {
                Some(frame) => {
                    if sink.send(Message::Binary(frame.into())).await.is_err() {
                        break;
                    }
                }
                None => break,
            },
            message = source.next() => match message {
                Some(Ok(Message::Binary(frame))) => deliver(&mut inward, &frame).await,
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
        }
    }
    let _ = sink.close().await;
}

async fn deliver(inward: &mut BTreeMap<u8, WriteHalf<Box<dyn Connection>>>, frame: &[u8]) {
    let Some((channel, payload)) = frame.split_first() else { return };
    if let Some(connection) = inward.get_mut(channel)
        && connection.write_all(payload).await.is_err()
    {
        inward.remove(channel);
    }
}

/// Carries what a port says to the client until it closes.
async fn pump(mut from: impl AsyncRead + Unpin, channel: u8, frames: Frames) {
    let mut buffer = vec![0_u8; 16 * 1024];
    loop {
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                let mut frame = vec![channel];
                frame.extend_from_slice(&buffer[..count]);
                if frames.send(frame).await.is_err() {
                    return;
                }
            }
        }
    }
}
