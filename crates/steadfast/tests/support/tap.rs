//! Sits between an operator and its sessions with servers, in SQL or ZooKeeper's protocol: counts what
//! changes something, and crashes the operator or cuts the connection before or after one of it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use runner::external::dial::{Dialer, Stream};
use sim::service::Handle;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What happens at a changing statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mischief {
    /// The operator ends before it is sent.
    CrashBefore,
    /// It is sent and carried out; the operator ends before it sees the reply.
    CrashAfter,
    /// It is sent and carried out; the connection breaks before the reply.
    LostReply,
}

/// What was said, and what shall happen.
pub(crate) struct Tap {
    handle: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    said: Vec<String>,
    plan: Option<(usize, Mischief)>,
    sessions: usize,
}

impl Tap {
    /// Does mischief at the nth changing statement, counted from 1.
    pub(crate) fn at(&self, nth: usize, mischief: Mischief) {
        self.state.lock().expect("no holder panics").plan = Some((nth, mischief));
    }

    /// The first words of every changing statement or call so far.
    pub(crate) fn said(&self) -> Vec<String> {
        self.state.lock().expect("no holder panics").said.clone()
    }

    /// How many sessions were opened.
    pub(crate) fn sessions(&self) -> usize {
        self.state.lock().expect("no holder panics").sessions
    }

    /// Counts what changes something and says what happens to it.
    fn hear(&self, bytes: &[u8]) -> Option<Mischief> {
        let words = statement(bytes).or_else(|| call(bytes))?;
        let mut state = self.state.lock().expect("no holder panics");
        state.said.push(words);
        let count = state.said.len();
        state.plan.filter(|(nth, _)| *nth == count).map(|(_, mischief)| mischief)
    }
}

/// Statements that change something and stay.
const CHANGES: [&str; 6] =
    ["CREATE ROLE", "CREATE DATABASE", "ALTER", "GRANT", "REVOKE", "COMMENT"];

/// A dialer with a tap on every connection.
pub(crate) struct TappingDialer {
    pub(crate) inner: Arc<dyn Dialer>,
    pub(crate) tap: Arc<Tap>,
}

impl TappingDialer {
    pub(super) fn new(inner: Arc<dyn Dialer>, handle: Handle) -> Self {
        Self { inner, tap: Arc::new(Tap { handle, state: Mutex::default() }) }
    }
}

impl Dialer for TappingDialer {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            if self.tap.handle.crashed() {
                return Err(broken());
            }
            let inner = self.inner.dial(host, port).await?;
            self.tap.state.lock().expect("no holder panics").sessions += 1;
            let tap = self.tap.clone();
            Ok(Box::new(Tapped { inner, tap, after: None }) as Box<dyn Stream>)
        })
    }
}

struct Tapped {
    inner: Box<dyn Stream>,
    tap: Arc<Tap>,
    /// What happens when the reply comes.
    after: Option<Mischief>,
}

fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

/// The first words of a statement that changes something and stays.
fn statement(bytes: &[u8]) -> Option<String> {
    let words: Vec<&str> = query(bytes)?.split_whitespace().take(2).collect();
    let words = words.join(" ");
    CHANGES.iter().any(|change| words.starts_with(change)).then_some(words)
}

/// A call of ZooKeeper's protocol that changes something, which the client sends in one piece: what it
/// does and to which node.
fn call(bytes: &[u8]) -> Option<String> {
    let int = |at: usize| {
        let four = bytes.get(at..at + 4)?;
        Some(i32::from_be_bytes(four.try_into().ok()?))
    };
    let whole = usize::try_from(int(0)?).ok()? + 4 == bytes.len();
    let kind = match int(8)? {
        1 => "create",
        5 => "write",
        16 => "reconfigure",
        _ => return None,
    };
    let length = usize::try_from(int(12)?).ok()?;
    let path = std::str::from_utf8(bytes.get(16..16 + length)?).ok()?;
    (whole && int(4)? > 0).then(|| format!("{kind} {path}").trim_end().to_owned())
}

/// The text of a simple query, which the client sends in one piece.
fn query(bytes: &[u8]) -> Option<&str> {
    let (b'Q', text) = (bytes.first()?, bytes.get(5..)?) else { return None };
    std::str::from_utf8(text.split(|b| *b == 0).next()?).ok()
}

impl AsyncRead for Tapped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.tap.handle.crashed() {
            return Poll::Ready(Err(broken()));
        }
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        match (polled, self.after) {
            (Poll::Ready(Ok(())), Some(mischief)) => {
                if mischief == Mischief::CrashAfter {
                    self.tap.handle.crash();
                }
                buffer.clear();
                Poll::Ready(Err(broken()))
            }
            (polled, _) => polled,
        }
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.tap.handle.crashed() {
            return Poll::Ready(Err(broken()));
        }
        match self.tap.hear(bytes) {
            Some(Mischief::CrashBefore) => {
                self.tap.handle.crash();
                return Poll::Ready(Err(broken()));
            }
            other => self.after = self.after.or(other),
        }
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
