//! ZooKeeper's records as bytes: integers in network order, texts and buffers behind their length.
//!
//! The source is `zookeeper.jute` of release 3.5 and newer. Must not do I/O.

use std::io;

use phased::fact::{Node, ZooKeeperCall};

const CREATE: i32 = 1;
const READ: i32 = 4;
const WRITE: i32 = 5;
const RECONFIGURE: i32 = 16;
const CLOSE: i32 = -11;
/// Read, write, create, delete and administer.
const ALL_PERMISSIONS: i32 = 31;
/// The mode of a node that outlives its session.
const PERSISTENT: i32 = 0;

/// What a call came to.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// A node.
    Node(Node),
    /// Done, and nothing to show for it.
    Nothing,
    /// The server's error.
    Error(i32),
}

/// Asks for a session that lives for this long without a sign of life.
pub(super) fn connect(timeout_seconds: u32) -> Vec<u8> {
    let milliseconds = i32::try_from(timeout_seconds.saturating_mul(1000)).unwrap_or(i32::MAX);
    let mut out = Vec::new();
    int(&mut out, 0);
    long(&mut out, 0);
    int(&mut out, milliseconds);
    long(&mut out, 0);
    buffer(&mut out, &[0; 16]);
    // A server without a quorum must refuse, rather than answer from what it has.
    out.push(0);
    out
}

/// The id of the granted session; 0 if there is none.
pub(super) fn session_of(frame: &[u8]) -> io::Result<i64> {
    let mut reader = Reader(frame);
    reader.int()?;
    reader.int()?;
    reader.long()
}

/// A call with its number.
pub(super) fn call(number: i32, call: &ZooKeeperCall) -> Vec<u8> {
    let mut out = Vec::new();
    int(&mut out, number);
    match call {
        ZooKeeperCall::Read { path } => {
            int(&mut out, READ);
            text(&mut out, path);
            out.push(0);
        }
        ZooKeeperCall::Create { path, data } => {
            int(&mut out, CREATE);
            text(&mut out, path);
            text(&mut out, data);
            int(&mut out, 1);
            int(&mut out, ALL_PERMISSIONS);
            text(&mut out, "world");
            text(&mut out, "anyone");
            int(&mut out, PERSISTENT);
        }
        ZooKeeperCall::Write { path, data, version } => {
            int(&mut out, WRITE);
            text(&mut out, path);
            text(&mut out, data);
            int(&mut out, *version);
        }
        ZooKeeperCall::Reconfigure { joining, leaving, from } => {
            int(&mut out, RECONFIGURE);
            text(&mut out, joining);
            text(&mut out, leaving);
            // No list of all members: the change is incremental.
            int(&mut out, -1);
            long(&mut out, *from);
        }
    }
    out
}

/// The end of the session.
pub(super) fn close() -> Vec<u8> {
    let mut out = Vec::new();
    int(&mut out, 0);
    int(&mut out, CLOSE);
    out
}

/// The answer to a call.
///
/// # Errors
/// When the frame is cut, or answers another call.
pub(super) fn answer(frame: &[u8], number: i32, call: &ZooKeeperCall) -> io::Result<Answer> {
    let mut reader = Reader(frame);
    if reader.int()? != number {
        return Err(io::Error::other("an answer to another call"));
    }
    reader.long()?;
    let error = reader.int()?;
    if error != 0 {
        return Ok(Answer::Error(error));
    }
    match call {
        ZooKeeperCall::Read { .. } | ZooKeeperCall::Reconfigure { .. } => {
            super::node(&mut reader).map(Answer::Node)
        }
        ZooKeeperCall::Write { data, .. } => {
            let version = reader.version()?;
            Ok(Answer::Node(Node { data: data.clone(), version }))
        }
        ZooKeeperCall::Create { .. } => Ok(Answer::Nothing),
    }
}

fn int(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn long(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn text(out: &mut Vec<u8>, value: &str) {
    buffer(out, value.as_bytes());
}

fn buffer(out: &mut Vec<u8>, value: &[u8]) {
    // Paths and data of ours are a few hundred bytes.
    int(out, i32::try_from(value.len()).unwrap_or(i32::MAX));
    out.extend_from_slice(value);
}

/// Reads records from the front.
pub(super) struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(*head)
    }

    fn int(&mut self) -> io::Result<i32> {
        self.take().map(i32::from_be_bytes)
    }

    fn long(&mut self) -> io::Result<i64> {
        self.take().map(i64::from_be_bytes)
    }

    /// A buffer; a missing one (length -1) counts as empty.
    pub(super) fn buffer(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.int()?).unwrap_or_default();
        if self.0.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (head, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(head.to_vec())
    }

    /// The data version out of a node's statistics: behind two transaction ids and two times.
    pub(super) fn version(&mut self) -> io::Result<i32> {
        for _ in 0..4 {
            self.long()?;
        }
        self.int()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_carries_path_data_and_version() {
        let call = ZooKeeperCall::Write { path: "/a".into(), data: "b=1".into(), version: 7 };
        let expected = b"\0\0\0\x02\0\0\0\x05\0\0\0\x02/a\0\0\0\x03b=1\0\0\0\x07".to_vec();
        assert_eq!(super::call(2, &call), expected);
    }

    #[test]
    fn a_read_finds_data_and_version() {
        let mut frame = b"\0\0\0\x01\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x03b=1".to_vec();
        frame.extend_from_slice(&[0; 32]);
        frame.extend_from_slice(&7i32.to_be_bytes());
        let call = ZooKeeperCall::Read { path: "/a".into() };
        let node = Node { data: "b=1".into(), version: 7 };
        assert_eq!(answer(&frame, 1, &call).unwrap(), Answer::Node(node));
    }

    #[test]
    fn an_error_and_a_cut_answer_are_told_apart() {
        let call = ZooKeeperCall::Read { path: "/a".into() };
        let refused = b"\0\0\0\x01\0\0\0\0\0\0\0\x09\xff\xff\xff\x9b";
        assert_eq!(answer(refused, 1, &call).unwrap(), Answer::Error(-101));
        assert!(answer(&refused[..15], 1, &call).is_err());
        assert!(answer(refused, 2, &call).is_err(), "another call's answer");
    }
}
