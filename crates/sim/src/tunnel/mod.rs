//! Port-forward as kubectl speaks it: SPDY/3.1 within the binary messages of a websocket
//! (`SPDY/3.1+portforward.k8s.io`).
//!
//! For each connection to its local port the client opens two streams of one request id: one for
//! an error, one for data. Flow control is left out, as the client leaves it out.

mod dictionary;
mod frame;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::stream::{Connection, Dial};
use frame::{Decoder, Encoder, Frame};

/// The subprotocol that asks for the tunnel.
pub(crate) const PROTOCOL: &str = "SPDY/3.1+portforward.k8s.io";

/// Frames on their way to the client.
type Outgoing = mpsc::Sender<Vec<u8>>;
/// Payloads on their way to a port; dropping the sender ends them.
type Inward = mpsc::Sender<Vec<u8>>;

/// Serves the tunnel until either side goes away.
pub(crate) async fn serve<S>(socket: WebSocketStream<S>, pod: Value, dial: Arc<dyn Dial>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sink, mut source) = socket.split();
    let (outgoing, mut frames) = mpsc::channel::<Vec<u8>>(64);
    // A task of its own, so that a client that reads slowly cannot keep its own bytes from the port.
    let writer = tokio::spawn(async move {
        while let Some(frame) = frames.recv().await {
            if sink.send(Message::Binary(frame.into())).await.is_err() {
                return;
            }
        }
        // The client may be gone already.
        let _ = sink.close().await;
    });
    let mut tunnel = Tunnel {
        decoder: Decoder::new(),
        encoder: Encoder::new(),
        outgoing,
        errors: BTreeMap::new(),
        inward: BTreeMap::new(),
        pod: Arc::new(pod),
        dial,
    };
    while let Some(Ok(message)) = source.next().await {
        let open = match message {
            Message::Binary(bytes) => tunnel.take(&bytes).await,
            Message::Close(_) => false,
            _ => true,
        };
        if !open {
            break;
        }
    }
    drop(tunnel);
    // Pumps that still have something to say hold the other senders, and end with their ports.
    writer.abort();
}

struct Tunnel {
    decoder: Decoder,
    encoder: Encoder,
    outgoing: Outgoing,
    /// The error stream of each request id whose data stream is not open yet.
    errors: BTreeMap<String, u32>,
    /// Open data streams.
    inward: BTreeMap<u32, Inward>,
    pod: Arc<Value>,
    dial: Arc<dyn Dial>,
}

impl Tunnel {
    /// Takes bytes in; whether the tunnel is still wanted.
    async fn take(&mut self, bytes: &[u8]) -> bool {
        self.decoder.feed(bytes);
        loop {
            match self.decoder.next() {
                Ok(Some(Frame::GoAway)) | Err(_) => return false,
                Ok(Some(frame)) => {
                    if self.heed(frame).await.is_none() {
                        return false;
                    }
                }
                Ok(None) => return true,
            }
        }
    }

    /// `None` when nobody takes our frames any more.
    async fn heed(&mut self, frame: Frame) -> Option<()> {
        match frame {
            Frame::Open { stream, headers, .. } => {
                let reply = self.encoder.reply(stream);
                self.outgoing.send(reply).await.ok()?;
                self.open(stream, &headers);
            }
            Frame::Data { stream, fin, payload } => {
                if let Some(inward) = self.inward.get(&stream) {
                    // A port that is closed takes nothing; its pump tells the client.
                    let _ = inward.send(payload).await;
                }
                if fin {
                    self.inward.remove(&stream);
                }
            }
            Frame::Reset { stream } => {
                self.inward.remove(&stream);
            }
            Frame::Ping { id } => self.outgoing.send(frame::pong(id)).await.ok()?,
            Frame::GoAway | Frame::Other => {}
        }
        Some(())
    }

    fn open(&mut self, stream: u32, headers: &BTreeMap<String, String>) {
        let header = |name: &str| headers.get(name).map(String::as_str).unwrap_or_default();
        let request = header("requestid");
        if header("streamtype") == "error" {
            self.errors.insert(request.to_owned(), stream);
            return;
        }
        let Some(error) = self.errors.remove(request) else { return };
        let port = header("port").parse().unwrap_or_default();
        let (inward, payloads) = mpsc::channel(16);
        self.inward.insert(stream, inward);
        let pair = Pair { data: stream, error, outgoing: self.outgoing.clone() };
        tokio::spawn(pair.carry(self.pod.clone(), self.dial.clone(), port, payloads));
    }
}

/// The two streams of one connection.
struct Pair {
    data: u32,
    error: u32,
    outgoing: Outgoing,
}

impl Pair {
    async fn carry(
        self,
        pod: Arc<Value>,
        dial: Arc<dyn Dial>,
        port: u16,
        payloads: mpsc::Receiver<Vec<u8>>,
    ) {
        let failure = match dial.dial(&pod, port).await {
            Ok(connection) => self.exchange(connection, payloads).await.err(),
            Err(error) => Some(error),
        };
        let message = failure.map(|error| {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
            format!("error forwarding port {port} to pod {name}, uid {uid}: {error}")
        });
        for (stream, text) in
            [(self.error, message.unwrap_or_default()), (self.data, String::new())]
        {
            // A client that is gone needs no goodbye.
            let _ = self.outgoing.send(frame::data(stream, true, text.as_bytes())).await;
        }
    }

    /// Carries bytes both ways until the port closes.
    async fn exchange(
        &self,
        connection: Box<dyn Connection>,
        mut payloads: mpsc::Receiver<Vec<u8>>,
    ) -> std::io::Result<()> {
        let (mut read, mut write) = tokio::io::split(connection);
        let inward = tokio::spawn(async move {
            while let Some(payload) = payloads.recv().await {
                write.write_all(&payload).await?;
            }
            write.shutdown().await
        });
        let mut buffer = vec![0_u8; 16 * 1024];
        let outcome = loop {
            match read.read(&mut buffer).await {
                Ok(0) => break Ok(()),
                Ok(count) => {
                    let frame = frame::data(self.data, false, &buffer[..count]);
                    if self.outgoing.send(frame).await.is_err() {
                        break Ok(());
                    }
                }
                Err(error) => break Err(error),
            }
        };
        inward.abort();
        outcome
    }
}
