//! One connection: a four-letter word, or a session with its requests.
//!
//! Must not decide what an ensemble agrees upon; the ground does.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::server::Server;
use super::tree::{Change, Node};
use super::wire::{Out, Taken, frame, send};
use super::{NO_AUTH, NO_NODE, UNIMPLEMENTED, words};

const CONFIG: &str = "/zookeeper/config";

/// Serves a connection until either side ends it.
pub(super) async fn serve(server: Arc<Server>, mut stream: DuplexStream) {
    tokio::select! {
        biased;
        () = server.over() => {}
        _ = converse(&server, &mut stream) => {}
    }
}

async fn converse(server: &Server, stream: &mut DuplexStream) -> io::Result<()> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    server.speaks().await;
    if let Some(answer) = words::answer(server, &head) {
        return stream.write_all(answer.as_bytes()).await;
    }
    let opening = frame(stream, i32::from_be_bytes(head)).await?;
    let Some(timeout) = timeout(&opening).filter(|_| server.mode().is_some()) else {
        return Ok(());
    };
    // The id and the password of a session are never asked for again: it does not move on.
    let granted = Out::default().int(0).int(timeout).long(1).buffer(&[0; 16]).flag(false);
    send(stream, granted).await?;
    loop {
        let length = stream.read_i32().await?;
        let request = frame(stream, length).await?;
        server.speaks().await;
        let Some((reply, goes_on)) = answer(server, &request) else { return Ok(()) };
        send(stream, reply).await?;
        if !goes_on {
            return Ok(());
        }
    }
}

fn timeout(opening: &[u8]) -> Option<i32> {
    let mut taken = Taken(opening);
    taken.int()?;
    taken.long()?;
    taken.int()
}

/// The answer to a request, and whether the session goes on; none when the connection just ends.
fn answer(server: &Server, request: &[u8]) -> Option<(Out, bool)> {
    let mut taken = Taken(request);
    let (number, kind) = (taken.int()?, taken.int()?);
    server.mode()?;
    let disk = server.ground.disk(&server.host)?;
    let at = |transaction, error| Out::reply(number, transaction, error);
    let now = disk.transaction;
    let told = |out: Out| Some((out, true));
    if server.condition().refuses_changes && matches!(kind, 1 | 2 | 5 | 15 | 16) {
        return told(at(now, NO_AUTH));
    }
    match kind {
        -11 => Some((at(now, 0), false)),
        11 => told(at(now, 0)),
        9 => {
            let path = taken.text()?;
            told(at(now, 0).buffer(path.as_bytes()))
        }
        3 | 4 | 8 | 12 => {
            let path = taken.text()?;
            let read = read(server, &path);
            told(match read {
                None => at(now, NO_NODE),
                Some((node, children)) => shown(at(now, 0), kind, &node, &children),
            })
        }
        1 | 2 | 5 | 15 => {
            let change = change(kind, &mut taken)?;
            let done = server.ground.change(&server.host, &change)?;
            told(match done {
                Err(error) => at(now, error),
                Ok(transaction) => changed(server, at(transaction, 0), kind, &change),
            })
        }
        16 => {
            let (joining, leaving) = (taken.text()?, taken.text()?);
            taken.buffer()?;
            let from = taken.long()?;
            let done = server.ground.reconfigure(&server.host, (&joining, &leaving), from)?;
            told(match done {
                Err(error) => at(now, error),
                Ok(config) => {
                    let node = Node { data: config.text().into_bytes(), ..Node::default() };
                    at(config.version, 0).buffer(&node.data).statistics(&node, 0)
                }
            })
        }
        _ => told(at(now, UNIMPLEMENTED)),
    }
}

/// A node and the names of its children.
fn read(server: &Server, path: &str) -> Option<(Node, Vec<String>)> {
    if path == CONFIG {
        let node = Node { data: server.members().into_bytes(), ..Node::default() };
        return Some((node, Vec::new()));
    }
    let disk = server.ground.disk(&server.host)?;
    let node = disk.tree.node(path)?.clone();
    let mut children: Vec<String> =
        disk.tree.children(path).into_iter().map(str::to_owned).collect();
    if path == "/zookeeper" {
        children.push("config".to_owned());
    }
    Some((node, children))
}

fn shown(out: Out, kind: i32, node: &Node, children: &[String]) -> Out {
    let names: Vec<&str> = children.iter().map(String::as_str).collect();
    match kind {
        3 => out.statistics(node, names.len()),
        4 => out.buffer(&node.data).statistics(node, names.len()),
        8 => out.texts(&names),
        _ => out.texts(&names).statistics(node, names.len()),
    }
}

fn change(kind: i32, taken: &mut Taken<'_>) -> Option<Change> {
    let path = taken.text()?;
    Some(match kind {
        2 => Change::Delete { path, version: taken.int()? },
        5 => Change::Write { path, data: taken.buffer()?, version: taken.int()? },
        _ => Change::Create { path, data: taken.buffer()? },
    })
}

fn changed(server: &Server, out: Out, kind: i32, change: &Change) -> Out {
    let (Change::Create { path, .. } | Change::Write { path, .. } | Change::Delete { path, .. }) =
        change;
    let node = read(server, path);
    let (node, children) = node.unwrap_or_default();
    match kind {
        2 => out,
        1 => out.buffer(path.as_bytes()),
        5 => out.statistics(&node, children.len()),
        _ => out.buffer(path.as_bytes()).statistics(&node, children.len()),
    }
}
