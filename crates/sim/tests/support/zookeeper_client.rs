//! A client of ZooKeeper's protocol, as small as the tests need it, written from the protocol and not
//! from the model.

use sim::world::World;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

fn host(ordinal: u32) -> String {
    format!("zk-{ordinal}.zk-headless.default.svc")
}

/// Everything that a server answers to a word; empty when nobody is there.
pub(crate) async fn say(world: &World, ordinal: u32, word: &str) -> String {
    let Ok(mut stream) = world.dial(&host(ordinal), 2181) else { return String::new() };
    stream.write_all(word.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("text");
    answer
}

/// A session.
pub(crate) struct Session {
    stream: DuplexStream,
    number: i32,
}

/// A reply's body, or its error; -4 (`ConnectionLoss`) when the connection ended.
type Reply = Result<Vec<u8>, i32>;

impl Session {
    /// Opens a session; none when the server grants none.
    pub(crate) async fn open(world: &World, ordinal: u32) -> Option<Session> {
        let mut stream = world.dial(&host(ordinal), 2181).ok()?;
        let mut body = vec![0; 12];
        body.extend(4000_i32.to_be_bytes());
        body.extend([0; 8]);
        body.extend(16_i32.to_be_bytes());
        body.extend([0; 17]);
        let reply = exchange(&mut stream, &body).await?;
        assert_eq!(reply.len(), 4 + 4 + 8 + 4 + 16 + 1);
        Some(Session { stream, number: 0 })
    }

    async fn ask(&mut self, kind: i32, rest: &[&[u8]]) -> Reply {
        self.number += 1;
        let mut body = self.number.to_be_bytes().to_vec();
        body.extend(kind.to_be_bytes());
        rest.iter().for_each(|part| body.extend(*part));
        let reply = exchange(&mut self.stream, &body).await.ok_or(-4)?;
        let int = |at: usize| i32::from_be_bytes(reply[at..at + 4].try_into().expect("four"));
        assert_eq!(int(0), self.number);
        if int(12) == 0 { Ok(reply[16..].to_vec()) } else { Err(int(12)) }
    }

    pub(crate) async fn create(&mut self, path: &str, data: &str) -> Result<(), i32> {
        // Everybody may do everything, and the node outlives the session.
        let rights = [1_i32.to_be_bytes(), 31_i32.to_be_bytes()].concat();
        let who = [text("world"), text("anyone"), vec![0; 4]].concat();
        self.ask(1, &[&text(path), &text(data), &rights, &who]).await.map(|_| ())
    }

    /// Data and version.
    pub(crate) async fn get(&mut self, path: &str) -> Result<(String, i32), i32> {
        let body = self.ask(4, &[&text(path), &[0]]).await?;
        let length = i32::from_be_bytes(body[..4].try_into().expect("four"));
        let end = 4 + usize::try_from(length).expect("a length");
        let data = String::from_utf8_lossy(&body[4..end]).into_owned();
        let version = body[end + 32..end + 36].try_into().expect("four");
        Ok((data, i32::from_be_bytes(version)))
    }

    pub(crate) async fn set(&mut self, path: &str, data: &str, version: i32) -> Result<(), i32> {
        self.ask(5, &[&text(path), &text(data), &version.to_be_bytes()]).await.map(|_| ())
    }

    pub(crate) async fn reconfigure(
        &mut self,
        joining: &str,
        leaving: &str,
        from: i64,
    ) -> Result<(), i32> {
        let nobody = (-1_i32).to_be_bytes();
        let rest = [&text(joining)[..], &text(leaving), &nobody, &from.to_be_bytes()];
        self.ask(16, &rest).await.map(|_| ())
    }
}

fn text(text: &str) -> Vec<u8> {
    let length = i32::try_from(text.len()).expect("short");
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}

async fn exchange(stream: &mut DuplexStream, body: &[u8]) -> Option<Vec<u8>> {
    let length = i32::try_from(body.len()).expect("short");
    stream.write_all(&[&length.to_be_bytes()[..], body].concat()).await.ok()?;
    let mut reply = vec![0; usize::try_from(stream.read_i32().await.ok()?).ok()?];
    stream.read_exact(&mut reply).await.ok()?;
    Some(reply)
}
