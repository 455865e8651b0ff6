//! One short session with ZooKeeper: connect, a few calls, close.
//!
//! Watches nothing and keeps no session. Must not decide what an error means, but for a node that
//! is read and does not exist, which is an answer.

mod wire;

use std::io;
use std::time::Duration;

use phased::fact::{NO_NODE, Node, ZooKeeperCall, ZooKeeperOutcome, ZooKeeperRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::dial::{Dialer, Stream};
use wire::{Answer, Reader};

/// The longest frame that is taken from a server, in bytes: twice its own default limit.
const LONGEST_FRAME: usize = 2 * 1024 * 1024;

/// Runs the session within its bounds.
pub(crate) async fn run(dialer: &dyn Dialer, request: &ZooKeeperRequest) -> ZooKeeperOutcome {
    let one = u64::from(request.timeout_seconds.max(1));
    let bound = Duration::from_secs(one * (request.calls.len() as u64 + 1));
    let why = match tokio::time::timeout(bound, converse(dialer, request)).await {
        Ok(Ok(outcome)) => return outcome,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer in time".to_owned(),
    };
    ZooKeeperOutcome::Unreachable { message: format!("{}:{}: {why}", request.host, request.port) }
}

async fn converse(dialer: &dyn Dialer, request: &ZooKeeperRequest) -> io::Result<ZooKeeperOutcome> {
    let mut stream = dialer.dial(&request.host, request.port).await?;
    exchange(&mut stream, &wire::connect(request.timeout_seconds)).await.and_then(|frame| {
        if wire::session_of(&frame)? == 0 {
            return Err(io::Error::other("the server grants no session"));
        }
        Ok(())
    })?;
    let mut nodes = Vec::new();
    for (place, call) in request.calls.iter().enumerate() {
        let number = i32::try_from(place + 1).map_err(io::Error::other)?;
        let frame = exchange(&mut stream, &wire::call(number, call)).await?;
        match wire::answer(&frame, number, call)? {
            Answer::Node(node) => nodes.push(Some(node)),
            Answer::Nothing => nodes.push(None),
            Answer::Error(NO_NODE) if matches!(call, ZooKeeperCall::Read { .. }) => {
                nodes.push(None);
            }
            Answer::Error(code) => {
                close(&mut stream).await;
                return Ok(ZooKeeperOutcome::Refused { code, call: place });
            }
        }
    }
    close(&mut stream).await;
    Ok(ZooKeeperOutcome::Done(nodes))
}

/// Ends the session, so that the server does not keep it until it expires. All that was asked is
/// answered, so an error here changes nothing.
async fn close(stream: &mut Box<dyn Stream>) {
    let _ = exchange(stream, &wire::close()).await;
}

async fn exchange(stream: &mut Box<dyn Stream>, body: &[u8]) -> io::Result<Vec<u8>> {
    let length = i32::try_from(body.len()).map_err(io::Error::other)?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(body);
    stream.write_all(&frame).await?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let length = usize::try_from(i32::from_be_bytes(length)).map_err(io::Error::other)?;
    if length > LONGEST_FRAME {
        return Err(io::Error::other(format!("an answer of {length} bytes")));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// The node that a read or write answered.
fn node(reader: &mut Reader<'_>) -> io::Result<Node> {
    let data = reader.buffer()?;
    let version = reader.version()?;
    Ok(Node { data: String::from_utf8_lossy(&data).into_owned(), version })
}
