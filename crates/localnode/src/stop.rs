//! The order to stop a container, and how long it may take. One giver, many hearers.

use std::time::Duration;
use tokio::sync::watch;

/// Gives the order.
#[derive(Debug, Clone)]
pub(crate) struct StopOrder(watch::Sender<Option<Duration>>);

/// Hears the order.
#[derive(Debug, Clone)]
pub(crate) struct StopListener(watch::Receiver<Option<Duration>>);

/// A fresh pair.
pub(crate) fn stop_order() -> (StopOrder, StopListener) {
    let (giver, hearer) = watch::channel(None);
    (StopOrder(giver), StopListener(hearer))
}

impl StopOrder {
    /// Orders the stop within `grace`; a second order does not change the first.
    pub(crate) fn give(&self, grace: Duration) {
        self.0.send_if_modified(|order| {
            let fresh = order.is_none();
            if fresh {
                *order = Some(grace);
            }
            fresh
        });
    }
}

impl StopListener {
    /// Waits for the order and returns the grace period; a giver that is gone means "at once".
    pub(crate) async fn wanted(&mut self) -> Duration {
        match self.0.wait_for(Option::is_some).await {
            Ok(order) => order.unwrap_or_default(),
            Err(_) => Duration::ZERO,
        }
    }
}
