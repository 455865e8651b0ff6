//! How many passes run at once. A pass that waits long for an answer gives its slot to others.
//!
//! Sixteen resources whose servers do not answer would otherwise hold up all the rest (fault
//! catalogue G-66, G-75). Must not know what a pass does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// A pass that takes longer than this waits for somebody; work of our own takes milliseconds.
const LINGER: Duration = Duration::from_secs(2);

/// Counts the passes that have stepped aside.
#[derive(Default)]
pub(crate) struct Slots {
    aside: AtomicUsize,
    freed: Notify,
}

/// One pass that has stepped aside, for as long as it lives.
struct Aside<'a>(&'a Slots);

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.0.aside.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Slots {
    /// Runs `work`, which steps aside once it takes long.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(LINGER) => {}
        }
        self.aside.fetch_add(1, Ordering::Relaxed);
        let _aside = Aside(self);
        self.freed.notify_one();
        work.await
    }

    /// How many of the running passes have stepped aside.
    pub(crate) fn aside(&self) -> usize {
        self.aside.load(Ordering::Relaxed)
    }

    /// Waits until one more has.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn long_work_gives_its_slot_away_and_short_work_keeps_it() {
        let slots = Slots::default();
        let short = slots.run(tokio::time::sleep(LINGER / 2)); // virtual time
        short.await;
        assert_eq!(slots.aside(), 0);
        let long = slots.run(tokio::time::sleep(LINGER * 3)); // virtual time
        tokio::pin!(long);
        tokio::select! {
            biased;
            () = &mut long => unreachable!("it takes longer"),
            () = slots.freed() => {}
        }
        assert_eq!(slots.aside(), 1);
        long.await;
        assert_eq!(slots.aside(), 0, "it is over");
    }
}
