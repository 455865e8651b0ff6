//! The loop of one controller: takes what is due, runs passes, sets the next time.
//!
//! A pass that panics is caught and told in the resource's status; a pass that hangs is cut off.
//! Neither slows the others.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use phased::fact::Fate;
use phased::{Controller, Live, ObjectId, Trigger, Trouble, Watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::pace::{Moment, Pace};
use crate::pass::{End, Means, panicked, pass, report, timed_out};
use crate::queue::Queue;
use crate::slots::Slots;

/// Limits of the loop.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Passes at the same time, those not counted that wait long for an answer.
    pub concurrency: usize,
    /// Passes at the same time, all counted.
    pub in_flight: usize,
    /// How long one pass may take.
    pub pass_timeout: Duration,
    /// How often a resource is looked at although nothing changed; heals a missed event.
    pub resync: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 16,
            in_flight: 256,
            pass_timeout: Duration::from_secs(180),
            resync: Duration::from_secs(3600),
        }
    }
}

/// A controller with its type forgotten, so that several share one process.
pub(crate) trait Driven: Send + Sync + 'static {
    fn name(&self) -> &'static str;
    fn queue(&self) -> &Queue;
    fn watches(&self) -> Vec<Watch>;
    fn kind(&self) -> phased::KindRef;
    fn pass<'a>(&'a self, means: &'a Means, id: &'a ObjectId) -> BoxFuture<'a, End>;
    fn report<'a>(
        &'a self,
        means: &'a Means,
        id: &'a ObjectId,
        trouble: &'a Trouble,
    ) -> BoxFuture<'a, ()>;
    fn owners_of(&self, id: &ObjectId, live: &Live) -> Vec<ObjectId>;
}

/// A controller and its queue.
pub(crate) struct Drive<C: Controller> {
    queue: Queue,
    controller: std::marker::PhantomData<fn() -> C>,
}

impl<C: Controller> Drive<C> {
    pub(crate) fn new() -> Self {
        Self { queue: Queue::default(), controller: std::marker::PhantomData }
    }
}

impl<C: Controller> Driven for Drive<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn watches(&self) -> Vec<Watch> {
        C::watches()
    }

    fn kind(&self) -> phased::KindRef {
        C::KIND
    }

    fn pass<'a>(&'a self, means: &'a Means, id: &'a ObjectId) -> BoxFuture<'a, End> {
        Box::pin(pass::<C>(means, id))
    }

    fn report<'a>(
        &'a self,
        means: &'a Means,
        id: &'a ObjectId,
        trouble: &'a Trouble,
    ) -> BoxFuture<'a, ()> {
        Box::pin(report::<C>(means, id, trouble))
    }

    /// Resources that a changed object leads to, by the triggers of its kind.
    fn owners_of(&self, id: &ObjectId, live: &Live) -> Vec<ObjectId> {
        if id.kind == C::KIND {
            return vec![id.clone()];
        }
        let mut found = Vec::new();
        for watch in C::watches().iter().filter(|w| w.kind == id.kind) {
            match &watch.trigger {
                Trigger::Label(key) => found.extend(live.label(key).map(str::to_owned)),
                Trigger::NameSuffix(suffix) => {
                    found.extend(id.name.strip_suffix(suffix).map(str::to_owned));
                }
                Trigger::Owner => found.extend(
                    live.metadata
                        .owner_references
                        .iter()
                        .flatten()
                        .filter(|o| {
                            o.kind == C::KIND.kind && group_of(&o.api_version) == C::KIND.group
                        })
                        .map(|o| o.name.clone()),
                ),
            }
        }
        found.sort();
        found.dedup();
        found.into_iter().map(|name| ObjectId::new(C::KIND, id.namespace.clone(), name)).collect()
    }
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Runs passes until `stop`, then waits for those that run.
pub(crate) async fn drive(
    driven: Arc<dyn Driven>,
    means: Means,
    limits: Limits,
    stop: CancellationToken,
) {
    let mut running: JoinSet<(ObjectId, End)> = JoinSet::new();
    let mut pace = Pace::default();
    let slots = Arc::new(Slots::default());
    let has_room = |running: usize| {
        let busy = running.saturating_sub(slots.aside());
        busy < limits.concurrency && running < limits.in_flight.max(limits.concurrency)
    };
    loop {
        while has_room(running.len()) && !stop.is_cancelled() {
            let Some(id) = driven.queue().take(Instant::now()) else { break };
            let pass = guarded(driven.clone(), means.clone(), id, limits.pass_timeout);
            let slots = slots.clone();
            running.spawn(async move { slots.run(pass).await });
        }
        means.metrics.queue(driven.name(), driven.queue().depth(), pace.unsettled());
        means.metrics.knows(means.store.len());
        if stop.is_cancelled() && running.is_empty() {
            return;
        }
        // After a stop nothing is taken any more, so what is due must not wake us either.
        let takes = has_room(running.len()) && !stop.is_cancelled();
        let due = driven.queue().next_due().filter(|_| takes);
        tokio::select! {
            biased;
            Some(Ok((id, end))) = running.join_next() => {
                settle(driven.queue(), &mut pace, &id, &end, &moment(&means, &limits));
            }
            () = stop.cancelled(), if !stop.is_cancelled() => {}
            () = driven.queue().changed() => {}
            () = slots.freed() => {}
            () = sleep_until(due) => {}
        }
    }
}

fn moment<'a>(means: &'a Means, limits: &Limits) -> Moment<'a> {
    let (now, clock) = (Instant::now(), means.clock.now());
    Moment { now, clock, resync: limits.resync, random: means.random.as_ref() }
}

/// Sets when the resource is looked at next.
fn settle(queue: &Queue, pace: &mut Pace, id: &ObjectId, end: &End, moment: &Moment<'_>) {
    match pace.next(id, end, moment) {
        None => queue.forget(id),
        Some(next) => queue.done(id, next.at, next.not_before),
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A pass behind a time-out and a net for panics.
async fn guarded(
    driven: Arc<dyn Driven>,
    means: Means,
    id: ObjectId,
    bound: Duration,
) -> (ObjectId, End) {
    let began = Instant::now();
    let work = AssertUnwindSafe(driven.pass(&means, &id)).catch_unwind();
    let end = match tokio::time::timeout(bound, work).await {
        Ok(Ok(end)) => end,
        Ok(Err(_)) => {
            means.metrics.panicked(driven.name());
            tracing::error!(object = %id, "a pass panicked");
            tell(driven.as_ref(), &means, &id, &panicked()).await;
            End::Troubled { fate: Fate::WeAreWrong, retry_after: None }
        }
        Err(_) => {
            tracing::warn!(object = %id, seconds = bound.as_secs(), "a pass took too long");
            tell(driven.as_ref(), &means, &id, &timed_out(bound)).await;
            End::Troubled { fate: Fate::WorldMayHeal, retry_after: None }
        }
    };
    let outcome = match &end {
        End::Settled(_) => "settled",
        End::Wrote => "wrote",
        End::LookAgain => "look_again",
        End::Troubled { .. } => "troubled",
        End::Gone => "gone",
    };
    means.metrics.passed(driven.name(), outcome, began.elapsed().as_secs_f64());
    (id, end)
}

/// Lets the status tell of it, behind the same net: whoever panics twice is still looked at again.
async fn tell(driven: &dyn Driven, means: &Means, id: &ObjectId, trouble: &Trouble) {
    let told = AssertUnwindSafe(driven.report(means, id, trouble)).catch_unwind();
    if told.await.is_err() {
        tracing::error!(object = %id, "telling of a trouble panicked");
    }
}
