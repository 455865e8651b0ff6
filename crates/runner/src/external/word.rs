//! A word said over TCP, and all that is answered.
//!
//! Must not interpret the answer.

use std::time::Duration;

use phased::fact::{WordOutcome, WordRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::dial::Dialer;

/// The longest answer that is kept, in bytes.
const LONGEST: u64 = 64 * 1024;

/// Says it once.
pub(crate) async fn say(dialer: &dyn Dialer, request: &WordRequest) -> WordOutcome {
    let bound = Duration::from_secs(u64::from(request.timeout_seconds.max(1)));
    let exchange = async {
        let mut stream = dialer.dial(&request.host, request.port).await?;
        stream.write_all(request.word.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(LONGEST).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let why = match tokio::time::timeout(bound, exchange).await {
        Ok(Ok(answer)) => return WordOutcome::Said(answer),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", request.timeout_seconds),
    };
    WordOutcome::Unreachable { message: format!("{}:{}: {why}", request.host, request.port) }
}
