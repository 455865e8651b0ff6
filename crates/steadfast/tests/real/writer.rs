//! A client that writes all along, and knows what the server acknowledged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use super::Bench;
use super::sql::{Who, ask, login};

/// Writes until it is told to stop.
pub(crate) struct Writer {
    stop: CancellationToken,
    task: JoinHandle<Tally>,
}

/// What a writer saw.
pub(crate) struct Tally {
    /// Numbers whose insert was acknowledged.
    pub(crate) acknowledged: Vec<i64>,
    /// Longest time between two acknowledgements.
    pub(crate) longest_gap: Duration,
}

impl Tally {
    /// Says it in the test's output.
    pub(crate) fn tell(&self, what: &str) {
        eprintln!(
            "{what}: {} writes acknowledged, none lost, longest gap {:.1} s",
            self.acknowledged.len(),
            self.longest_gap.as_secs_f32()
        );
    }
}

impl Writer {
    /// Makes the table, and starts writing into it. The client reads its password anew for each
    /// session, as an application does whose Secret is mounted.
    pub(crate) async fn start(bench: &Arc<Bench>, name: &str) -> Writer {
        let client = login(bench, name, Who::Application).await.expect("a login");
        ask(&client, "CREATE TABLE ledger (n bigint PRIMARY KEY)").await.expect("a table");
        let stop = CancellationToken::new();
        let work = write(Arc::clone(bench), name.to_owned(), stop.clone());
        Writer { stop, task: tokio::spawn(work) }
    }

    /// Ends the writing, and compares what is stored with what was acknowledged.
    pub(crate) async fn finish(self, bench: &Bench, name: &str) -> Tally {
        self.stop.cancel();
        let tally = self.task.await.expect("the writer ends");
        let client = login(bench, name, Who::Application).await.expect("a login");
        let stored = ask(&client, "SELECT n FROM ledger ORDER BY n").await.expect("readable");
        let stored: std::collections::BTreeSet<i64> =
            stored.split(';').filter_map(|n| n.parse().ok()).collect();
        let lost: Vec<_> = tally.acknowledged.iter().filter(|n| !stored.contains(n)).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        assert!(!tally.acknowledged.is_empty(), "nothing was ever acknowledged");
        tally
    }
}

async fn write(bench: Arc<Bench>, name: String, stop: CancellationToken) -> Tally {
    let mut tally = Tally { acknowledged: Vec::new(), longest_gap: Duration::ZERO };
    let mut session: Option<Client> = None;
    let mut last = Instant::now();
    let mut next = 0_i64;
    while !stop.is_cancelled() {
        next += 1;
        match attempt(&bench, &name, &mut session, next).await {
            Some(()) => {
                tally.acknowledged.push(next);
                tally.longest_gap = tally.longest_gap.max(last.elapsed());
                last = Instant::now();
            }
            None => session = None,
        }
        tokio::time::sleep(Duration::from_millis(20)).await; // poll: the pace of the client
    }
    // An outage that lasts to the end is a gap too.
    tally.longest_gap = tally.longest_gap.max(last.elapsed());
    tally
}

/// One insert within two seconds.
async fn attempt(bench: &Bench, name: &str, session: &mut Option<Client>, n: i64) -> Option<()> {
    let bound = Duration::from_secs(2);
    if session.is_none() {
        let login = tokio::time::timeout(bound, login(bench, name, Who::Application)).await;
        *session = login.ok()?.ok();
    }
    let client = session.as_ref()?;
    let insert = format!("INSERT INTO ledger VALUES ({n})");
    tokio::time::timeout(bound, client.batch_execute(&insert)).await.ok()?.ok()
}
