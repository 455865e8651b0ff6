//! SPDY/3.1 frames, as far as port-forward uses them.
//!
//! Header blocks are one deflated stream over the whole connection, so each block must be read,
//! wanted or not.

use std::collections::BTreeMap;

use bytes::{Buf, BytesMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use super::dictionary::dictionary;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;
const FIN: u8 = 1;
/// Longest header block taken, inflated.
const HEADERS_LIMIT: usize = 64 * 1024;

/// What the client sent.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    Open {
        stream: u32,
        fin: bool,
        headers: BTreeMap<String, String>,
    },
    Data {
        stream: u32,
        fin: bool,
        payload: Vec<u8>,
    },
    Reset {
        stream: u32,
    },
    Ping {
        id: u32,
    },
    GoAway,
    /// A frame that port-forward has no use for.
    Other,
}

/// Bytes that are no frames.
#[derive(Debug, thiserror::Error)]
#[error("malformed SPDY: {0}")]
pub(super) struct Malformed(&'static str);

/// Cuts frames out of the bytes that arrive.
pub(super) struct Decoder {
    buffer: BytesMut,
    headers: Decompress,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { buffer: BytesMut::new(), headers: Decompress::new(true) }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if one has arrived.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, Malformed> {
        let Some((head, rest)) = self.buffer.split_first_chunk::<8>() else { return Ok(None) };
        let [a, b, c, d, flags, high, middle, low] = *head;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        if rest.len() < length {
            return Ok(None);
        }
        let first = u32::from_be_bytes([a, b, c, d]);
        self.buffer.advance(8);
        let mut body = self.buffer.split_to(length);
        if first & 0x8000_0000 == 0 {
            return Ok(Some(Frame::Data {
                stream: first,
                fin: flags & FIN != 0,
                payload: body.to_vec(),
            }));
        }
        #[allow(clippy::cast_possible_truncation, reason = "the kind is the lower half")]
        let kind = first as u16;
        self.control(kind, flags, &mut body).map(Some)
    }

    fn control(&mut self, kind: u16, flags: u8, body: &mut BytesMut) -> Result<Frame, Malformed> {
        let short = |_| Malformed("a control frame is too short");
        Ok(match kind {
            SYN_STREAM => {
                let stream = body.try_get_u32().map_err(short)?;
                // The associated stream, the priority and a slot: without meaning here.
                body.try_get_u32().map_err(short)?;
                body.try_get_u16().map_err(short)?;
                let headers = parse_headers(&self.inflate(body)?)?;
                Frame::Open { stream, fin: flags & FIN != 0, headers }
            }
            SYN_REPLY | HEADERS => {
                body.try_get_u32().map_err(short)?;
                self.inflate(body)?;
                Frame::Other
            }
            RST_STREAM => Frame::Reset { stream: body.try_get_u32().map_err(short)? },
            PING => Frame::Ping { id: body.try_get_u32().map_err(short)? },
            GOAWAY => Frame::GoAway,
            _ => Frame::Other,
        })
    }

    fn inflate(&mut self, block: &[u8]) -> Result<Vec<u8>, Malformed> {
        let start = self.headers.total_in();
        let mut out = Vec::new();
        loop {
            let read = usize::try_from(self.headers.total_in() - start).unwrap_or(usize::MAX);
            let rest = block.get(read..).unwrap_or_default();
            let before = out.len();
            out.reserve(4096);
            if let Err(error) = self.headers.decompress_vec(rest, &mut out, FlushDecompress::Sync) {
                error.needs_dictionary().ok_or(Malformed("headers are not deflated"))?;
                let primed = self.headers.set_dictionary(&dictionary());
                primed.map_err(|_| Malformed("headers want another dictionary"))?;
                continue;
            }
            if out.len() > HEADERS_LIMIT {
                return Err(Malformed("headers are too long"));
            }
            if out.len() == before {
                return Ok(out);
            }
        }
    }
}

fn parse_headers(mut block: &[u8]) -> Result<BTreeMap<String, String>, Malformed> {
    let text = |block: &mut &[u8]| {
        let length = block.try_get_u32().ok().and_then(|n| usize::try_from(n).ok());
        let (text, rest) = length
            .and_then(|length| block.split_at_checked(length))
            .ok_or(Malformed("a header is cut off"))?;
        *block = rest;
        Ok(String::from_utf8_lossy(text).into_owned())
    };
    let count = block.try_get_u32().map_err(|_| Malformed("headers are cut off"))?;
    (0..count).map(|_| Ok((text(&mut block)?, text(&mut block)?))).collect()
}

/// Writes the frames that the server sends.
pub(super) struct Encoder(Compress);

impl Encoder {
    pub(super) fn new() -> Self {
        Self(Compress::new(Compression::fast(), true))
    }

    /// Accepts a stream; the reply has no headers.
    pub(super) fn reply(&mut self, stream: u32) -> Vec<u8> {
        let mut body = stream.to_be_bytes().to_vec();
        body.reserve(64);
        // A block of four bytes into sixty-four cannot fail; were it cut, the client would say so.
        let _ = self.0.compress_vec(&0_u32.to_be_bytes(), &mut body, FlushCompress::Sync);
        control(SYN_REPLY, &body)
    }
}

/// Payload on a stream, the last one with `fin`.
pub(super) fn data(stream: u32, fin: bool, payload: &[u8]) -> Vec<u8> {
    frame(stream & 0x7fff_ffff, if fin { FIN } else { 0 }, payload)
}

/// The answer to a ping.
pub(super) fn pong(id: u32) -> Vec<u8> {
    control(PING, &id.to_be_bytes())
}

fn control(kind: u16, body: &[u8]) -> Vec<u8> {
    frame(0x8003_0000 | u32::from(kind), 0, body)
}

fn frame(first: u32, flags: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX) & 0x00ff_ffff;
    let mut bytes = first.to_be_bytes().to_vec();
    bytes.extend((u32::from(flags) << 24 | length).to_be_bytes());
    bytes.extend(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two SYN_STREAM frames as a client deflates them: one stream over both, with the dictionary.
    fn opened(deflater: &mut Compress, stream: u32, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut block = u32::try_from(headers.len()).expect("few").to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            block.extend(u32::try_from(text.len()).expect("short").to_be_bytes());
            block.extend(text.as_bytes());
        }
        let mut body = stream.to_be_bytes().to_vec();
        body.extend([0; 6]);
        body.reserve(1024);
        deflater.compress_vec(&block, &mut body, FlushCompress::Sync).expect("deflated");
        control(SYN_STREAM, &body)
    }

    #[test]
    fn headers_are_one_deflated_stream_over_the_connection() {
        let mut deflater = Compress::new(Compression::best(), true);
        deflater.set_dictionary(&dictionary()).expect("primed");
        let mut decoder = Decoder::new();
        for (stream, kind) in [(1, "error"), (3, "data")] {
            let bytes = opened(&mut deflater, stream, &[("streamtype", kind), ("port", "5432")]);
            for byte in &bytes {
                assert_eq!(decoder.next().expect("well formed"), None);
                decoder.feed(&[*byte]);
            }
            let headers = [("port", "5432"), ("streamtype", kind)];
            let headers = headers.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
            let wanted = Frame::Open { stream, fin: false, headers };
            assert_eq!(decoder.next().expect("well formed"), Some(wanted));
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let mut decoder = Decoder::new();
        decoder.feed(&control(SYN_STREAM, &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, b'n', b'o', b'n', b'e']));
        assert!(decoder.next().is_err());
        let mut decoder = Decoder::new();
        decoder.feed(&control(RST_STREAM, &[0]));
        assert!(decoder.next().is_err());
    }

    #[test]
    fn data_carries_its_stream_and_its_end() {
        let mut decoder = Decoder::new();
        decoder.feed(&data(3, true, b"bye"));
        let wanted = Frame::Data { stream: 3, fin: true, payload: b"bye".to_vec() };
        assert_eq!(decoder.next().expect("well formed"), Some(wanted));
    }
}
