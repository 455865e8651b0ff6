//! Watches: events after a version, bookmarks, expiry, and the faults of streams.
//!
//! A watch only reads the store's history; it never holds objects back for others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::{Cluster, Core};
use crate::faults::{ClientId, RuleId};
use crate::kind::Kind;
use crate::reply::{self, Broken};
use crate::request::Form;
use crate::status::Failure;
use crate::store::Change;
use crate::verbs::Selection;

/// How often a quiet watch gets a bookmark.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Bookmark shortly before the end, so that the next watch resumes close to now.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// Where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// After this version.
    After(u64),
    /// With everything there is, as ADDED events.
    Present,
    /// The same, ended by an annotated bookmark (`sendInitialEvents`).
    Streaming,
    /// With an error: the version is said to be gone.
    Gone,
}

/// Faults of one watch, with the rules that count them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disturbance {
    pub(crate) cut_after: Option<(RuleId, u64)>,
    pub(crate) silent_after: Option<(RuleId, u64)>,
    pub(crate) lose: Option<(RuleId, u64)>,
    pub(crate) duplicate: Option<RuleId>,
    pub(crate) delay: Option<(RuleId, Duration)>,
}

/// What is watched, and how.
#[derive(Clone)]
pub(crate) struct WatchPlan {
    pub(crate) kind: Arc<Kind>,
    pub(crate) selection: Selection,
    pub(crate) start: Start,
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Duration,
    pub(crate) form: Form,
    pub(crate) disturbance: Disturbance,
    pub(crate) client: ClientId,
}

/// A running watch.
pub(crate) struct Watching {
    cluster: Cluster,
    plan: WatchPlan,
    position: u64,
    queue: VecDeque<(Instant, Bytes)>,
    started: bool,
    headed: bool,
    ended: bool,
    silent: bool,
    sent: u64,
    /// Events that there were, lost ones included.
    seen: u64,
    cuts: u64,
    deadline: Instant,
    bookmark_at: Instant,
}

impl Watching {
    pub(crate) fn new(cluster: Cluster, plan: WatchPlan) -> Watching {
        let now = Instant::now();
        let deadline = now + plan.timeout;
        // A watch that is shorter than that gets no bookmark at its end.
        let before_end =
            now + plan.timeout.checked_sub(BOOKMARK_BEFORE_END).unwrap_or(plan.timeout * 2);
        let cuts = cluster.with(|core| core.faults.cuts());
        Watching {
            cluster,
            plan,
            position: 0,
            queue: VecDeque::new(),
            started: false,
            headed: false,
            ended: false,
            silent: false,
            sent: 0,
            seen: 0,
            cuts,
            deadline,
            bookmark_at: (now + BOOKMARK_EVERY).min(before_end),
        }
    }

    /// The next chunk of the body; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        let changed = self.cluster.changed();
        loop {
            let notified = changed.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let cluster = self.cluster.clone();
            match cluster.with(|core| self.advance(core)) {
                Step::Send(bytes) => return Some(Ok(bytes)),
                Step::Break => {
                    self.ended = true;
                    return Some(Err(Broken("watch cut")));
                }
                Step::End => return None,
                Step::Wait(until) => {
                    tokio::select! {
                        biased;
                        () = notified => {}
                        () = tokio::time::sleep_until(until) => {}
                    }
                }
            }
        }
    }

    fn advance(&mut self, core: &mut Core) -> Step {
        if self.ended && self.queue.is_empty() {
            return Step::End;
        }
        if core.faults.dead(self.plan.client) || core.faults.cuts() != self.cuts {
            return Step::Break;
        }
        if self.is_silent(core) {
            // Longer than any test: only a cut or a crash ends it.
            return Step::Wait(Instant::now() + Duration::from_secs(365 * 86_400));
        }
        if !self.ended {
            self.fill(core);
        }
        let now = Instant::now();
        if let Some((due, _)) = self.queue.front() {
            let due = *due;
            if due > now {
                return Step::Wait(due);
            }
            if let Some((rule, after)) = self.plan.disturbance.cut_after
                && self.sent >= after
            {
                core.faults.count(rule);
                return Step::Break;
            }
            self.sent += 1;
            return self.queue.pop_front().map_or(Step::End, |(_, bytes)| Step::Send(bytes));
        }
        if self.ended || now >= self.deadline || !self.served(core) {
            self.ended = true;
            return Step::End;
        }
        if self.plan.bookmarks && now >= self.bookmark_at {
            self.bookmark_at = now + BOOKMARK_EVERY;
            let version = core.store.version();
            return Step::Send(self.bookmark(version, false));
        }
        let until =
            if self.plan.bookmarks { self.bookmark_at.min(self.deadline) } else { self.deadline };
        Step::Wait(until)
    }

    fn is_silent(&mut self, core: &mut Core) -> bool {
        let Some((rule, after)) = self.plan.disturbance.silent_after else { return false };
        if !self.silent && self.sent >= after {
            self.silent = true;
            core.faults.count(rule);
        }
        self.silent
    }

    /// Whether the next event is lost on its way.
    fn loses(&mut self, core: &mut Core) -> bool {
        self.seen += 1;
        let Some((rule, nth)) = self.plan.disturbance.lose else { return false };
        let lost = nth > 0 && self.seen.is_multiple_of(nth);
        if lost {
            core.faults.count(rule);
        }
        lost
    }

    /// A watch of a kind whose definition is gone ends.
    fn served(&self, core: &Core) -> bool {
        let kind = &self.plan.kind;
        core.kinds.at(&kind.group, &kind.version, &kind.plural).is_some()
    }

    fn fill(&mut self, core: &mut Core) {
        if !self.started {
            self.started = true;
            match self.plan.start {
                Start::After(version) => self.position = version,
                Start::Gone => return self.expire(core),
                Start::Present | Start::Streaming => self.present(core),
            }
        }
        let Some(changes) = core.store.since(self.position) else { return self.expire(core) };
        let kind = &self.plan.kind;
        let changes: Vec<Change> = changes
            .filter(|change| {
                let key = &change.key;
                key.plural == kind.plural
                    && key.group == kind.storage_group()
                    && self.plan.selection.namespace.as_ref().is_none_or(|ns| *ns == key.namespace)
            })
            .cloned()
            .collect();
        self.position = self.position.max(core.store.version());
        for change in changes {
            if let Some((event, object)) = self.event(&change)
                && !self.loses(core)
            {
                self.push(core, event, object);
            }
        }
    }

    /// Everything that is there now, as if it had just appeared.
    fn present(&mut self, core: &mut Core) {
        let kind = self.plan.kind.clone();
        let namespace = self.plan.selection.namespace.clone();
        let objects: Vec<Value> = core
            .store
            .list(kind.storage_group(), &kind.plural, namespace.as_deref())
            .filter_map(|(_, object)| self.plan.selection.pick(&kind, object))
            .collect();
        for object in objects {
            self.push(core, "ADDED", object);
        }
        self.position = core.store.version();
        if self.plan.start == Start::Streaming {
            let bookmark = self.bookmark(self.position, true);
            self.queue.push_back((Instant::now(), bookmark));
        }
    }

    fn event(&self, change: &Change) -> Option<(&'static str, Value)> {
        let pick = |object: &Option<Arc<Value>>| {
            object.as_ref().and_then(|object| self.plan.selection.pick(&self.plan.kind, object))
        };
        match (pick(&change.before), pick(&change.after)) {
            (None, None) => None,
            (None, Some(after)) => Some(("ADDED", after)),
            (Some(_), Some(after)) => Some(("MODIFIED", after)),
            (Some(mut before), None) => {
                before["metadata"]["resourceVersion"] = json!(change.version.to_string());
                Some(("DELETED", before))
            }
        }
    }

    fn push(&mut self, core: &mut Core, event: &str, object: Value) {
        let now = core.now();
        let mut object = reply::object(&self.plan.kind, self.plan.form, object, now);
        if let Form::Table(_) = self.plan.form {
            // Only the first table of a watch says what its columns are.
            if self.headed {
                object["columnDefinitions"] = Value::Null;
            }
            self.headed = true;
        }
        let bytes = line(event, &object);
        let mut due = Instant::now();
        if let Some((rule, delay)) = self.plan.disturbance.delay {
            due += delay;
            core.faults.count(rule);
        }
        self.queue.push_back((due, bytes.clone()));
        if let Some(rule) = self.plan.disturbance.duplicate {
            core.faults.count(rule);
            self.queue.push_back((due, bytes));
        }
    }

    fn expire(&mut self, core: &Core) {
        let text = format!("too old resource version: {} ({})", self.position, core.store.oldest());
        let status = Failure::gone(text).to_status();
        self.queue.push_back((Instant::now(), line("ERROR", &status)));
        self.ended = true;
    }

    fn bookmark(&self, version: u64, initial: bool) -> Bytes {
        let kind = &self.plan.kind;
        let mut object = json!({
            "kind": kind.kind, "apiVersion": kind.api_version(),
            "metadata": { "resourceVersion": version.to_string() },
        });
        if initial {
            object["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        if self.plan.form != Form::Whole {
            object["kind"] = json!("PartialObjectMetadata");
            object["apiVersion"] = json!("meta.k8s.io/v1");
        }
        if let Form::Table(_) = self.plan.form {
            object = json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1",
                "metadata": { "resourceVersion": version.to_string() },
                "columnDefinitions": [], "rows": [],
            });
        }
        line("BOOKMARK", &object)
    }
}

enum Step {
    Send(Bytes),
    Wait(Instant),
    Break,
    End,
}

fn line(event: &str, object: &Value) -> Bytes {
    let mut text = json!({ "type": event, "object": object }).to_string();
    text.push('\n');
    Bytes::from(text)
}
