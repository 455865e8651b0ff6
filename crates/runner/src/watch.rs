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
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::api::{Server, live};
use crate::backoff::Backoff;
use crate::metrics::Metrics;
use crate::random::{Random, jitter};
use crate::store::{Store, version};
use crate::trim::Ownership;

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
    /// What of the ownership of fields is kept; only kinds that we apply need it.
    pub ownership: Ownership,
}

/// Which objects of a kind a watch asks for, and which of those it keeps.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Label selectors of the controllers, `key=value` or `key` with commas; an object that fits one is
    /// kept.
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

    /// Whether an object is kept.
    pub fn keeps(&self, live: &phased::Live) -> bool {
        self.all_kept
            || self.kept.iter().any(|selector| {
                selector.split(',').all(|part| match part.split_once('=') {
                    Some((key, value)) => live.label(key) == Some(value),
                    None => live.label(part).is_some(),
                })
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
    /// How often everything is listed again, whatever the watch says.
    pub resync: Duration,
}

/// How often a watch may break in a row, without an event, before it starts from a new list.
const PATIENCE: u32 = 5;

/// A watch that ran this long has recovered. Before that its backoff goes on growing, so that a
/// server which expires every watch at once is not listed without pause (fault catalogue G-14).
const CALM: Duration = Duration::from_secs(5);

/// The same where the request itself failed, which may have taken long without being any good
/// (G-23): longer than the longest wait for an answer, and than the longest delay.
const LONG_CALM: Duration = Duration::from_secs(300);

/// Whether all went well for so long before this error that it is the first of its row.
fn is_first(error: &watcher::Error, quiet: Duration) -> bool {
    match error {
        watcher::Error::WatchFailed(_) | watcher::Error::WatchError(_) => quiet > CALM,
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::NoResourceVersion => quiet > LONG_CALM,
    }
}

impl KindWatch {
    /// Watches until `stop`; failures are retried for ever at a bounded pace.
    pub async fn run(self, context: WatchContext, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.follow_for_ever(&context) => {}
        }
    }

    /// Lists and watches. A watch that broke goes on from where it was. A new list follows a version
    /// that the server no longer has, a watch that breaks again and again, and the end of the
    /// resync: no event is needed for ever (fault catalogue G-12, G-15).
    async fn follow_for_ever(&self, context: &WatchContext) {
        let mut failures = 0u32;
        loop {
            let config = watcher::Config {
                label_selector: self.selection.asked(),
                ..watcher::Config::default()
            };
            let mut events =
                watcher(context.server.streams(self.kind, &self.scope), config).boxed();
            let mut listing = Listing::default();
            let mut quiet_since = Instant::now();
            let mut unheard = 0;
            while let Ok(Some(event)) = timeout_at(listing.ends, events.next()).await {
                let error = match event {
                    Ok(event) => {
                        unheard = 0;
                        self.take_in(context, &mut listing, event);
                        continue;
                    }
                    Err(error) => error,
                };
                if is_first(&error, quiet_since.elapsed()) {
                    failures = 0;
                }
                self.report(context, &error);
                failures = failures.saturating_add(1);
                unheard += 1;
                let delay = Backoff::WORLD.delay(failures, context.random.as_ref());
                tokio::time::sleep(delay).await;
                quiet_since = Instant::now();
                if is_expired(&error) || unheard >= PATIENCE {
                    break;
                }
            }
        }
    }

    fn report(&self, context: &WatchContext, error: &watcher::Error) {
        let (kind, scope) = (self.kind.kind, &self.scope);
        context.metrics.watch_failed(kind);
        if code_of(error) == Some(404) {
            tracing::warn!(kind, scope, "not served: its definition is waited for");
        } else {
            tracing::warn!(kind, scope, %error, "watch failed");
        }
    }

    fn take_in(&self, context: &WatchContext, listing: &mut Listing, event: Event<DynamicObject>) {
        match event {
            Event::Init => {
                *listing = Listing { mark: context.store.mark(), ..Listing::default() };
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
                let resync = context.resync.mul_f64(jitter(context.random.as_ref(), 0.1));
                listing.ends = Instant::now() + resync;
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
        self.ownership.trim(&mut object.metadata);
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

/// A list, while it is taken in and while the watch that follows it lasts.
struct Listing {
    mark: u64,
    held: BTreeSet<ObjectId>,
    /// When the next list is due.
    ends: Instant,
}

impl Default for Listing {
    fn default() -> Self {
        // Longer than any process lives: a list that is under way is not begun anew.
        let ends = Instant::now() + Duration::from_secs(30 * 365 * 86400);
        Self { mark: 0, held: BTreeSet::new(), ends }
    }
}

/// Whether the server answered that it no longer has the version, as HTTP code: kube's watcher
/// would ask for the same version for ever.
fn is_expired(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(_)) && code_of(error) == Some(410)
}

/// The HTTP code of a request that was refused.
fn code_of(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => Some(status.code),
        _ => None,
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
        selection.add(&watch(Some("app,uid"), Trigger::Label("app")));
        assert!(selection.keeps(&labelled(json!({"app": "x", "uid": "y"}))));
        assert!(!selection.keeps(&labelled(json!({"app": "x"}))), "each part must fit");
    }
}
