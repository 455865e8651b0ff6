//! PostgreSQL's wire protocol, version 3: reading the client's messages, writing the server's.
//!
//! Must not know what messages mean.

use std::io;

use tokio::io::{AsyncReadExt, DuplexStream};

use super::refusal::Refusal;
use super::value::Relation;

/// Longest message that is accepted, in bytes.
const LIMIT: usize = 16 << 20;

/// What opens a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// TLS or GSS encryption is asked for.
    Encryption,
    /// A query of another session is to be cancelled.
    Cancel,
    /// A session, with its parameters.
    Session(Vec<(String, String)>),
    /// Another version of the protocol.
    Unknown(i32),
}

/// Reads the first message.
pub(super) async fn opening(stream: &mut DuplexStream) -> io::Result<Opening> {
    let length = usize::try_from(stream.read_i32().await?).unwrap_or(0);
    if !(8..=10_000).contains(&length) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let code = stream.read_i32().await?;
    let mut body = vec![0; length - 8];
    stream.read_exact(&mut body).await?;
    Ok(match code {
        80_877_103 | 80_877_104 => Opening::Encryption,
        80_877_102 => Opening::Cancel,
        code if code >> 16 == 3 => {
            let texts: Vec<String> = body
                .split(|byte| *byte == 0)
                .map(|t| String::from_utf8_lossy(t).into_owned())
                .collect();
            let pairs = texts.chunks(2).filter(|pair| pair.len() == 2 && !pair[0].is_empty());
            Opening::Session(pairs.map(|pair| (pair[0].clone(), pair[1].clone())).collect())
        }
        code => Opening::Unknown(code),
    })
}

/// Reads a message: its type and body.
pub(super) async fn message(stream: &mut DuplexStream) -> io::Result<(u8, Vec<u8>)> {
    let kind = stream.read_u8().await?;
    let length = usize::try_from(stream.read_i32().await?).unwrap_or(0);
    if !(4..=LIMIT).contains(&length) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body).await?;
    Ok((kind, body))
}

/// The text before the first NUL, and the rest.
pub(super) fn text(body: &[u8]) -> (String, &[u8]) {
    let end = body.iter().position(|byte| *byte == 0).unwrap_or(body.len());
    let rest = body.get(end + 1..).unwrap_or(&[]);
    (String::from_utf8_lossy(&body[..end]).into_owned(), rest)
}

/// Messages on their way out.
#[derive(Default)]
pub(super) struct Out {
    bytes: Vec<u8>,
}

impl Out {
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn send(&mut self, kind: u8, body: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend(length(body.len() + 4));
        self.bytes.extend(body);
    }

    /// One byte outside of any message: the answer to a request for encryption.
    pub(super) fn no_encryption(&mut self) {
        self.bytes.push(b'N');
    }

    pub(super) fn authentication(&mut self, code: i32, body: &[u8]) {
        let mut message = code.to_be_bytes().to_vec();
        message.extend(body);
        self.send(b'R', &message);
    }

    pub(super) fn parameter(&mut self, name: &str, value: &str) {
        self.send(b'S', format!("{name}\0{value}\0").as_bytes());
    }

    pub(super) fn key(&mut self, pid: i32, secret: u32) {
        let mut body = pid.to_be_bytes().to_vec();
        body.extend(secret.to_be_bytes());
        self.send(b'K', &body);
    }

    /// `I` idle, `T` in a transaction, `E` in a failed one.
    pub(super) fn ready(&mut self, state: u8) {
        self.send(b'Z', &[state]);
    }

    pub(super) fn empty(&mut self) {
        self.send(b'I', &[]);
    }

    pub(super) fn complete(&mut self, tag: &str) {
        self.send(b'C', format!("{tag}\0").as_bytes());
    }

    pub(super) fn refusal(&mut self, refusal: &Refusal) {
        let severity = if refusal.fatal { "FATAL" } else { "ERROR" };
        self.report(b'E', severity, refusal);
    }

    pub(super) fn warning(&mut self, refusal: &Refusal) {
        self.report(b'N', "WARNING", refusal);
    }

    fn report(&mut self, kind: u8, severity: &str, refusal: &Refusal) {
        let mut body = Vec::new();
        let mut part = |letter: u8, text: &str| {
            body.push(letter);
            body.extend(text.as_bytes());
            body.push(0);
        };
        part(b'S', severity);
        part(b'V', severity);
        part(b'C', refusal.code);
        part(b'M', &refusal.message);
        let position = refusal.position.map(|position| position.to_string());
        let optional = [(b'D', &refusal.detail), (b'H', &refusal.hint), (b'P', &position)];
        for (letter, text) in optional {
            if let Some(text) = text {
                part(letter, text);
            }
        }
        body.push(0);
        self.send(kind, &body);
    }

    pub(super) fn rows(&mut self, relation: &Relation) {
        let mut body = count(relation.columns.len());
        for (index, name) in relation.columns.iter().enumerate() {
            let first = relation.rows.iter().map(|row| &row[index]).find(|value| !value.is_null());
            let oid = first.map_or(25, super::value::Value::oid);
            body.extend(name.as_bytes());
            body.push(0);
            body.extend(0_i32.to_be_bytes());
            body.extend(0_i16.to_be_bytes());
            body.extend(oid.to_be_bytes());
            body.extend((-1_i16).to_be_bytes());
            body.extend((-1_i32).to_be_bytes());
            body.extend(0_i16.to_be_bytes());
        }
        self.send(b'T', &body);
        for row in &relation.rows {
            let mut body = count(row.len());
            for value in row {
                match value.shown() {
                    None => body.extend((-1_i32).to_be_bytes()),
                    Some(text) => {
                        body.extend(length(text.len()));
                        body.extend(text.as_bytes());
                    }
                }
            }
            self.send(b'D', &body);
        }
    }
}

fn length(bytes: usize) -> [u8; 4] {
    i32::try_from(bytes).unwrap_or(i32::MAX).to_be_bytes()
}

fn count(items: usize) -> Vec<u8> {
    i16::try_from(items).unwrap_or(i16::MAX).to_be_bytes().to_vec()
}
