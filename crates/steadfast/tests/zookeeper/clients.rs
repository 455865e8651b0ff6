//! A client that writes all along, through whichever server serves: what was acknowledged stays.
//!
//! Everything here runs under virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sim::world::World;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::support::Bench;
use crate::support::ensemble::{ZK, server};

/// How often it writes.
const EVERY: Duration = Duration::from_millis(500);

/// A writing client.
pub(crate) struct Client {
    task: JoinHandle<()>,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    acknowledged: Vec<String>,
    longest_gap: Duration,
}

impl Client {
    /// Begins to write, through so many servers in turn.
    pub(crate) fn start(bench: &Bench, servers: u32) -> Client {
        let log = Arc::<Mutex<Log>>::default();
        let (world, shared) = (bench.world.clone(), log.clone());
        let task = tokio::spawn(async move { write(&world, servers, &shared).await });
        Client { task, log }
    }

    /// Ends it: every acknowledged write must be there. Answers the longest gap between two.
    pub(crate) fn end(self, bench: &Bench) -> Duration {
        self.task.abort();
        let log = self.log.lock().expect("no holder panics");
        assert!(log.acknowledged.len() > 20, "{} writes", log.acknowledged.len());
        let server = server(bench, 0).expect("a server");
        let lost = log.acknowledged.iter().find(|path| server.node(path).is_none());
        assert_eq!(lost, None, "an acknowledged write is lost");
        log.longest_gap
    }
}

async fn write(world: &World, servers: u32, log: &Mutex<Log>) {
    let mut last = Instant::now();
    for number in 0.. {
        let path = format!("/written-{number}");
        let done = (0..servers).any(|ordinal| {
            let server = world.zookeeper("default", &format!("{ZK}-{ordinal}"));
            server.is_some_and(|server| server.create(&path, "x").is_ok())
        });
        if done {
            let mut log = log.lock().expect("no holder panics");
            log.acknowledged.push(path);
            log.longest_gap = log.longest_gap.max(last.elapsed());
            last = Instant::now();
        }
        // Virtual time.
        tokio::time::sleep(EVERY).await;
    }
}
