//! One watch a kind, with its own backoff: a kind that fails does not slow the others.
//!
//! Each event goes into the store and wakes the resources it leads to. Must not decide anything.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::{self, Event, watcher};
use phased::{KindRef, ObjectId};
use tokio_util::sync::CancellationToken;

use crate::api::{Server, live};
use crate::backoff::Backoff;
use crate::metrics::Metrics;
use crate::random::Random;
use crate::store::{Store, version};

/// Receives each change of a watched object.
pub trait Listener: Send + Sync + 'static {
    /// `live` is the state after the change, or the last one before it went.
    fn changed(&self, id: &ObjectId, live: &phased::Live);
}

/// A watch of one kind in one scope.
pub struct KindWatch {
    /// The kind.
    pub kind: KindRef,
    /// Namespace, or empty for all.
    pub scope: String,
    /// Label selector.
    pub selector: Option<String>,
    /// Whether ownership of fields is kept; only kinds that we apply need it.
    pub keep_ownership: bool,
}

/// What a watch works with.
#[derive(Clone)]
pub struct WatchContext {
    /// The server.
    pub server: Server,
    /// Where states go.
    pub store: Store,
    /// Who is told.
    pub listener: Arc<dyn Listener>,
    /// Jitter of the backoff.
    pub random: Arc<dyn Random>,
    /// Counters.
    pub metrics: Metrics,
}

/// A watch that went this long without an error has recovered. Before that its backoff goes on
/// growing, so that a server which expires every watch at once is not listed without pause (fault
/// catalogue G-14).
const CALM: Duration = Duration::from_secs(5);

impl KindWatch {
    /// Watches until `stop`; failures are retried for ever at a bounded pace.
    pub async fn run(self, context: WatchContext, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.follow_for_ever(&context) => {}
        }
    }

    /// Lists and watches. Only a version that the server no longer has starts from a new list; a
    /// watch that broke otherwise goes on from where it was.
    async fn follow_for_ever(&self, context: &WatchContext) {
        let mut failures = 0u32;
        loop {
            let config = watcher::Config {
                label_selector: self.selector.clone(),
                ..watcher::Config::default()
            };
            let mut events = watcher(context.server.api(self.kind, &self.scope), config).boxed();
            let mut listing = Listing::default();
            let mut quiet_since = tokio::time::Instant::now();
            while let Some(event) = events.next().await {
                let fresh = match event {
                    Ok(event) => {
                        if quiet_since.elapsed() > CALM {
                            failures = 0;
                        }
                        self.take_in(context, &mut listing, event);
                        continue;
                    }
                    Err(error) => {
                        self.report(context, &error);
                        is_expired(&error)
                    }
                };
                failures = failures.saturating_add(1);
                let delay = Backoff::WORLD.delay(failures, context.random.as_ref());
                tokio::time::sleep(delay).await;
                quiet_since = tokio::time::Instant::now();
                if fresh {
                    break;
                }
            }
        }
    }

    fn report(&self, context: &WatchContext, error: &watcher::Error) {
        context.metrics.watch_failed(self.kind.kind);
        tracing::warn!(kind = self.kind.kind, scope = %self.scope, %error, "watch failed");
    }

    fn take_in(&self, context: &WatchContext, listing: &mut Listing, event: Event<DynamicObject>) {
        match event {
            Event::Init => {
                *listing = Listing { mark: context.store.mark(), held: BTreeSet::new() };
            }
            Event::InitApply(object) => {
                if let Some(id) = self.put(context, object) {
                    listing.held.insert(id);
                }
            }
            Event::InitDone => {
                let held = std::mem::take(&mut listing.held);
                let gone = context.store.retain(self.kind, &self.scope, &held, listing.mark);
                for (id, live) in gone {
                    context.listener.changed(&id, &live);
                }
                context.metrics.listed(self.kind.kind);
            }
            Event::Apply(object) => {
                self.put(context, object);
            }
            Event::Delete(object) => {
                if let Some((id, live)) = self.read(object) {
                    context.store.remove(&id, live.uid(), version(&live));
                    context.listener.changed(&id, &live);
                }
            }
        }
    }

    fn put(&self, context: &WatchContext, object: DynamicObject) -> Option<ObjectId> {
        let (id, live) = self.read(object)?;
        if context.store.put(&id, live.clone()) {
            context.listener.changed(&id, &live);
        }
        Some(id)
    }

    fn read(&self, mut object: DynamicObject) -> Option<(ObjectId, phased::Live)> {
        if !self.keep_ownership {
            object.metadata.managed_fields = None;
        }
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        let name = object.metadata.name.clone()?;
        let id = ObjectId::new(self.kind, namespace, name);
        match live(self.kind, object) {
            Ok(live) => Some((id, live)),
            Err(error) => {
                tracing::error!(object = %id, %error, "object without readable metadata");
                None
            }
        }
    }
}

#[derive(Default)]
struct Listing {
    mark: u64,
    held: BTreeSet<ObjectId>,
}

/// Whether the server answered that it no longer has the version, as HTTP code: kube's watcher
/// would ask for the same version for ever.
fn is_expired(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 410,
        _ => false,
    }
}
