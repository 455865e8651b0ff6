//! ZooKeeper's records as bytes: integers in network order, texts and buffers behind their length.
//!
//! Must not know what requests mean.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::tree::Node;

/// Longest frame that is taken, in bytes; ZooKeeper's `jute.maxbuffer`.
const LIMIT: usize = 0xf_ffff;

/// Reads a frame whose length is known.
pub(super) async fn frame(stream: &mut DuplexStream, length: i32) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).ok().filter(|length| *length <= LIMIT);
    let mut body = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

/// Sends a frame.
pub(super) async fn send(stream: &mut DuplexStream, out: Out) -> io::Result<()> {
    let length = i32::try_from(out.0.len()).map_err(io::Error::other)?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(out.0);
    stream.write_all(&bytes).await
}

/// Takes records off the front of a frame.
pub(super) struct Taken<'a>(pub(super) &'a [u8]);

impl Taken<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn int(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    pub(super) fn long(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    /// A buffer; a missing one is empty.
    pub(super) fn buffer(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.int()?).unwrap_or_default();
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head.to_vec())
    }

    pub(super) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.buffer()?).ok()
    }
}

/// Records on their way out.
#[derive(Default)]
pub(super) struct Out(Vec<u8>);

impl Out {
    /// The head of a reply.
    pub(super) fn reply(number: i32, transaction: i64, error: i32) -> Out {
        Out::default().int(number).long(transaction).int(error)
    }

    pub(super) fn int(mut self, value: i32) -> Out {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn long(mut self, value: i64) -> Out {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn flag(mut self, value: bool) -> Out {
        self.0.push(u8::from(value));
        self
    }

    pub(super) fn buffer(self, value: &[u8]) -> Out {
        let mut out = self.int(i32::try_from(value.len()).unwrap_or(i32::MAX));
        out.0.extend(value);
        out
    }

    pub(super) fn texts(self, values: &[&str]) -> Out {
        let out = self.int(i32::try_from(values.len()).unwrap_or(i32::MAX));
        values.iter().fold(out, |out, value| out.buffer(value.as_bytes()))
    }

    /// Statistics of a node. Times are not kept.
    pub(super) fn statistics(self, node: &Node, children: usize) -> Out {
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        self.long(node.made)
            .long(node.changed)
            .long(0)
            .long(0)
            .int(node.version)
            .int(node.children_version)
            .int(0)
            .long(0)
            .int(number(node.data.len()))
            .int(number(children))
            .long(node.changed)
    }
}
