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
    /// What is asked of the server, and what is kept.
    pub selection: Selection,
    /// Whether ownership of fields is kept; only kinds that we apply need it.
    pub keep_ownership: bool,
}

/// Which objects of a kind a watch asks for, and which of those it keeps.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Label selectors of the controllers, each `key=value`; an object that fits one is kept.
    kept: Vec<String>,
    /// Whether objects must be seen that no selector fits.
    all_seen: bool,
    /// Whether every object is kept.
    all_kept: bool,
}

impl Selection {
    /// Everything is seen and kept.
    pub fn everything() -> Self {
        Self { kept: Vec::new(), all_seen: true, all_kept: true }
    }

    /// Adds what one controller wants of the kind.
    pub fn add(&mut self, watch: &phased::Watch) {
        match (&watch.selector, &watch.trigger) {
            (Some(selector), _) if self.kept.contains(selector) => {}
            (Some(selector), _) => self.kept.push(selector.clone()),
            (None, phased::Trigger::NameSuffix(_)) => self.all_seen = true,
            (None, phased::Trigger::Owner | phased::Trigger::Label(_)) => self.all_kept = true,
        }
    }

    /// The selector sent to the server. Several cannot be sent at once.
    fn asked(&self) -> Option<String> {
        match self.kept.as_slice() {
            [only] if !self.all_seen && !self.all_kept => Some(only.clone()),
            _ => None,
        }
    }

    fn keeps(&self, live: &phased::Live) -> bool {
        self.all_kept
            || self.kept.iter().any(|selector| {
                selector.split_once('=').is_some_and(|(key, value)| live.label(key) == Some(value))
            })
    }
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
                label_selector: self.selection.asked(),
                ..watcher::Config::default()
            };
            let mut events = watcher(context.server.api(self.kind, &self.scope), config).boxed();
            let mut listing = Listing::default();
            let mut quiet_since = tokio::time::Instant::now();
            while let Some(event) = events.next().await {
                let fresh = match event {
                    Ok(event) => {
                        self.take_in(context, &mut listing, event);
                        continue;
                    }
                    Err(error) => {
                        if quiet_since.elapsed() > CALM {
                            failures = 0;
                        }
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
        let before = context.store.get(&id);
        if !self.selection.keeps(&live) {
            if let Some(before) = before {
                context.store.remove(&id, before.uid(), version(&live));
                context.listener.changed(&id, &before);
            }
            context.listener.changed(&id, &live);
            return None;
        }
        if context.store.put(&id, live.clone()) {
            // Whoever lost it by a change of labels must look again, too.
            if let Some(before) = before.filter(|b| b.metadata.labels != live.metadata.labels) {
                context.listener.changed(&id, &before);
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use phased::{Live, Trigger, Watch};
    use serde_json::json;

    const SECRET: KindRef =
        KindRef { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };

    fn watch(selector: Option<&str>, trigger: Trigger) -> Watch {
        Watch { kind: SECRET, selector: selector.map(str::to_owned), trigger }
    }

    #[test]
    fn what_a_person_brings_along_is_seen_but_not_kept() {
        let mut selection = Selection::default();
        selection.add(&watch(Some("a=b"), Trigger::Label("c")));
        assert_eq!(selection.asked().as_deref(), Some("a=b"));
        selection.add(&watch(None, Trigger::NameSuffix("-credentials")));
        assert_eq!(selection.asked(), None, "all are seen");
        let labelled = |labels| {
            Live::new(json!({"metadata": {"name": "x", "labels": labels}})).expect("an object")
        };
        assert!(selection.keeps(&labelled(json!({"a": "b"}))));
        assert!(!selection.keeps(&labelled(json!({"a": "c"}))));
        assert!(Selection::everything().keeps(&labelled(json!({}))));
    }
}
