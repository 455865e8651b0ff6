//! Which resource is looked at when: one entry a resource, one pass at a time for each.
//!
//! The earliest asked time wins; whoever waits longest goes first, so that a resource that is
//! edited all the time cannot starve the others (fault catalogue G-66). Must not run anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use phased::ObjectId;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The queue of one controller. Its size is bounded by the number of resources.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    due: BTreeMap<ObjectId, Instant>,
    order: BTreeSet<(Instant, ObjectId)>,
    running: BTreeSet<ObjectId>,
    again: BTreeMap<ObjectId, Instant>,
    not_before: BTreeMap<ObjectId, Instant>,
}

impl State {
    fn schedule(&mut self, id: ObjectId, at: Instant) {
        let at = self.not_before.get(&id).map_or(at, |hold| at.max(*hold));
        if let Some(before) = self.due.get(&id).copied() {
            if before <= at {
                return;
            }
            self.order.remove(&(before, id.clone()));
        }
        self.due.insert(id.clone(), at);
        self.order.insert((at, id));
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a pass at `at`. While one is running, the next follows it.
    pub fn wake(&self, id: ObjectId, at: Instant) {
        let mut state = self.lock();
        if state.running.contains(&id) {
            let earliest = state.again.get(&id).map_or(at, |before| at.min(*before));
            state.again.insert(id, earliest);
        } else {
            state.schedule(id, at);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Takes the resource that has been due longest.
    pub fn take(&self, now: Instant) -> Option<ObjectId> {
        let mut state = self.lock();
        let (at, id) = state.order.first().filter(|(at, _)| *at <= now).cloned()?;
        state.order.remove(&(at, id.clone()));
        state.due.remove(&id);
        state.not_before.remove(&id);
        state.running.insert(id.clone());
        Some(id)
    }

    /// Ends a pass; `next` is when the resource wants to be looked at again, `not_before` holds
    /// back whatever else asks for it (a server that said when to come back).
    pub fn done(&self, id: &ObjectId, next: Instant, not_before: Option<Instant>) {
        let mut state = self.lock();
        state.running.remove(id);
        if let Some(hold) = not_before {
            state.not_before.insert(id.clone(), hold);
        }
        let at = state.again.remove(id).map_or(next, |again| again.min(next));
        state.schedule(id.clone(), at);
        drop(state);
        self.changed.notify_one();
    }

    /// Forgets a resource that is gone.
    pub fn forget(&self, id: &ObjectId) {
        let mut state = self.lock();
        state.running.remove(id);
        state.not_before.remove(id);
        if let Some(at) = state.again.remove(id) {
            state.schedule(id.clone(), at);
        }
    }

    /// When the next one is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.lock().order.first().map(|(at, _)| *at)
    }

    /// Waits for a change of the queue.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Number of resources that wait, due or not.
    pub fn depth(&self) -> usize {
        self.lock().order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phased::KindRef;
    use std::time::Duration;

    const KIND: KindRef =
        KindRef { group: "g", version: "v1", kind: "K", plural: "ks", namespaced: true };

    fn id(name: &str) -> ObjectId {
        ObjectId::new(KIND, "ns", name)
    }

    #[test]
    fn the_earliest_time_wins_and_the_longest_waiting_goes_first() {
        let (queue, now) = (Queue::default(), Instant::now());
        let later = now + Duration::from_secs(9);
        queue.wake(id("a"), later);
        queue.wake(id("b"), now + Duration::from_secs(1));
        queue.wake(id("a"), now);
        queue.wake(id("a"), later);
        assert_eq!(queue.take(now + Duration::from_secs(2)), Some(id("a")));
        assert_eq!(queue.take(now + Duration::from_secs(2)), Some(id("b")));
        assert_eq!(queue.take(later), None);
    }

    #[test]
    fn a_change_during_a_pass_is_looked_at_afterwards() {
        let (queue, now) = (Queue::default(), Instant::now());
        queue.wake(id("a"), now);
        assert_eq!(queue.take(now), Some(id("a")));
        queue.wake(id("a"), now);
        assert_eq!(queue.take(now), None, "one pass at a time");
        queue.done(&id("a"), now + Duration::from_secs(60), None);
        assert_eq!(queue.take(now), Some(id("a")));
    }

    #[test]
    fn a_server_that_asked_for_patience_gets_it() {
        let (queue, now) = (Queue::default(), Instant::now());
        queue.wake(id("a"), now);
        queue.take(now);
        let hold = now + Duration::from_secs(30);
        queue.done(&id("a"), hold, Some(hold));
        queue.wake(id("a"), now);
        assert_eq!(queue.take(now), None);
        assert_eq!(queue.take(hold), Some(id("a")));
    }

    #[test]
    fn a_noisy_resource_does_not_starve_a_calm_one() {
        let (queue, now) = (Queue::default(), Instant::now());
        queue.wake(id("noisy"), now);
        assert_eq!(queue.take(now), Some(id("noisy")));
        queue.wake(id("calm"), now + Duration::from_millis(1));
        queue.wake(id("noisy"), now + Duration::from_millis(2));
        queue.done(&id("noisy"), now + Duration::from_secs(9), None);
        assert_eq!(queue.take(now + Duration::from_millis(5)), Some(id("calm")));
    }
}
