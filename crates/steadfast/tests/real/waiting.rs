//! Waiting for what a real cluster does in its own time; whoever waits in vain says what was there.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Bench, PATIENCE, is_ready};

impl Bench {
    /// Watches until the Database satisfies the condition; the last state seen either way.
    pub(crate) async fn until(
        &self,
        name: &str,
        patience: Duration,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Value, Value> {
        let began = Instant::now();
        loop {
            let database = self.database(name).await;
            if holds(&database) {
                return Ok(database);
            }
            if began.elapsed() > patience {
                return Err(database);
            }
            tokio::time::sleep(Duration::from_millis(200)).await; // poll: the stored state
        }
    }

    pub(crate) async fn ready(&self, name: &str, patience: Duration) -> Result<Value, Value> {
        self.until(name, patience, is_ready).await
    }

    /// Waits for a state of the Database that must come.
    pub(crate) async fn must(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        match self.until(name, PATIENCE, holds).await {
            Ok(database) => database,
            Err(last) => panic!("{what}: {:#}\n{}", last["status"], self.describe().await),
        }
    }

    /// Waits for anything else that must come.
    pub(crate) async fn eventually(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let began = Instant::now();
        while !holds().await {
            assert!(began.elapsed() < PATIENCE, "{what}\n{}", self.describe().await);
            tokio::time::sleep(Duration::from_millis(200)).await; // poll: whatever is asked for
        }
    }
}
