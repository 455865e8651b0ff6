//! Waiting for what other processes do.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Waits until something is done, at most `patience`.
pub(crate) fn wait_until(what: &str, patience: Duration, done: impl Fn() -> bool) -> Result<()> {
    let deadline = Instant::now() + patience;
    while !done() {
        if Instant::now() > deadline {
            bail!("waited too long: {what}");
        }
        // poll: other processes' ends, which nothing announces to us
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
