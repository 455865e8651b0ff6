//! Shows what happens to the resources of the suite as it happens: each move between phases, each new reason, each
//! edit that was taken back.
//!
//! Must not decide anything: it prints what statuses and Events say.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::stream::{BoxStream, select_all};
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Client, ResourceExt};
use operators::catalog;
use serde_json::Value;
use tokio::time::Instant;

use super::apply::Applied;

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every resource with a status became Ready.
    Ready,
    /// The time is over.
    NotReady,
}

/// Namespace and name.
type Key = (String, String);

/// What was shown so far.
pub(crate) struct Screen {
    began: Instant,
    shown: BTreeMap<Key, Line>,
    /// Events that were shown, by uid and how often they had occurred.
    told: BTreeSet<(String, String)>,
}

/// News from the cluster.
enum News {
    Resource(Event<DynamicObject>),
    Event(DynamicObject),
}

impl Screen {
    /// Nothing was shown yet; time counts from here.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), shown: BTreeMap::new(), told: BTreeSet::new() }
    }

    /// Shows until everything that was applied is Ready, or the limit has passed.
    pub(crate) async fn until_ready(
        &mut self,
        client: &Client,
        applied: &[Applied],
        limit: Option<Duration>,
    ) -> anyhow::Result<Outcome> {
        let awaited: BTreeSet<Key> = applied
            .iter()
            .filter(|one| is_ours(&one.resource.kind))
            .map(|one| (one.namespace.clone(), one.name.clone()))
            .collect();
        let showing = self.follow(client, Some(&awaited));
        match limit {
            None => showing.await.map(|()| Outcome::Ready),
            Some(limit) => match tokio::time::timeout(limit, showing).await {
                Ok(done) => done.map(|()| Outcome::Ready),
                Err(_) => {
                    eprintln!(
                        "steadfast: not Ready after {} s; the last line says what it waits for",
                        limit.as_secs()
                    );
                    Ok(Outcome::NotReady)
                }
            },
        }
    }

    /// Shows until the process is told to stop.
    pub(crate) async fn for_ever(&mut self, client: &Client) -> anyhow::Result<()> {
        self.follow(client, None).await
    }

    async fn follow(
        &mut self,
        client: &Client,
        awaited: Option<&BTreeSet<Key>>,
    ) -> anyhow::Result<()> {
        let ready = |shown: &BTreeMap<Key, Line>| {
            awaited.is_some_and(|all| {
                all.iter().all(|key| shown.get(key).is_some_and(|line| line.ready))
            })
        };
        let mut news = news(client);
        while !ready(&self.shown) {
            match news.next().await {
                Some(News::Resource(event)) => self.resource(event),
                Some(News::Event(event)) => self.event(&event),
                None => break,
            }
        }
        Ok(())
    }

    fn resource(&mut self, event: Event<DynamicObject>) {
        match event {
            Event::Apply(object) | Event::InitApply(object) => {
                let key = (object.namespace().unwrap_or_default(), object.name_any());
                let line = Line::of(&object);
                let before = self.shown.get(&key).cloned().unwrap_or_default();
                if line.says_other_than(&before) && !line.phase.is_empty() {
                    self.print(&key.1, &line.after(&before));
                }
                self.shown.insert(key, line);
            }
            Event::Delete(object) => {
                let key = (object.namespace().unwrap_or_default(), object.name_any());
                self.shown.remove(&key);
                self.print(&key.1, &format!("{:>WHAT$}{}", "", "deleted"));
            }
            Event::Init | Event::InitDone => {}
        }
    }

    /// An edit that was taken back changes no phase, so only an Event tells of it.
    fn event(&mut self, event: &DynamicObject) {
        let data = &event.data;
        let kind = data["regarding"]["kind"].as_str().unwrap_or_default();
        if data["reason"] != "EditReverted" || !is_ours(kind) {
            return;
        }
        let times = data["series"]["count"].to_string();
        if self.told.insert((event.uid().unwrap_or_default(), times)) {
            let name = data["regarding"]["name"].as_str().unwrap_or_default().to_owned();
            let note = data["note"].as_str().unwrap_or_default();
            self.print(&name, &format!("{:>WHAT$}{:<PHASE$} {note}", "", "EditReverted"));
        }
    }

    fn print(&self, name: &str, what: &str) {
        let clock = Timestamp::now().strftime("%H:%M:%S").to_string();
        let elapsed = self.began.elapsed().as_secs_f64();
        let several = self.shown.keys().any(|(_, other)| other != name);
        let name = if several { format!("{name}  ") } else { String::new() };
        println!("{clock} {elapsed:>6.1} s  {name}{what}");
    }
}

/// Whether a controller of the suite runs resources of a kind.
pub(super) fn is_ours(kind: &str) -> bool {
    catalog::rows().iter().any(|row| row.kind.kind == kind)
}

/// Resources everywhere, not only those applied here: kubectl makes others. A broken watch is taken up
/// again after a pause; there is nothing to show of it.
fn news(client: &Client) -> BoxStream<'static, News> {
    let of = |group: &str, version: &str, kind: &str| {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::<DynamicObject>::all_with(client.clone(), &kind)
    };
    let followed = catalog::rows().into_iter().map(|row| {
        let all = of(row.kind.group, row.kind.version, row.kind.kind);
        let changes = watch(all, watcher::Config::default()).default_backoff();
        changes.map_ok(News::Resource).boxed()
    });
    let events = watch(of("events.k8s.io", "v1", "Event"), watcher::Config::default());
    let events = events.default_backoff().applied_objects().map_ok(News::Event).boxed();
    let news = select_all(followed.chain([events]));
    news.filter_map(|news| async { news.ok() }).boxed()
}

/// Width of what stands before a phase: `STATE TRANSITION: Provisioning -> `.
const WHAT: usize = 34;
/// Width of the longest phase.
const PHASE: usize = 12;

/// What is shown of a status.
#[derive(Clone, Debug, Default, PartialEq)]
struct Line {
    phase: String,
    reason: String,
    message: String,
    ready: bool,
}

impl Line {
    fn of(object: &DynamicObject) -> Self {
        let status = &object.data["status"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ready = condition(status, "Ready");
        let generation = object.metadata.generation.unwrap_or_default();
        let current = status["observedGeneration"].as_i64().unwrap_or_default() >= generation;
        Self {
            phase: text(&status["phase"]),
            reason: text(&ready["reason"]),
            message: text(&ready["message"]),
            ready: current && ready["status"] == "True" && status["phase"] == "Ready",
        }
    }

    fn says_other_than(&self, other: &Self) -> bool {
        (&self.phase, &self.reason, &self.message) != (&other.phase, &other.reason, &other.message)
    }

    /// In words, after what stood before; phases stand below each other.
    fn after(&self, before: &Self) -> String {
        let what = match before.phase.as_str() {
            phase if phase == self.phase => String::new(),
            "" => "STATE TRANSITION: New -> ".to_owned(),
            phase => format!("STATE TRANSITION: {phase} -> "),
        };
        format!("{what:>WHAT$}{:<PHASE$} {}: {}", self.phase, self.reason, self.message)
    }
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    status["conditions"]
        .as_array()
        .and_then(|all| all.iter().find(|c| c["type"] == kind))
        .unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_for_an_older_generation_is_not_ready() {
        let mut object: DynamicObject = serde_json::from_value(serde_json::json!({
            "apiVersion": "database.example.com/v1", "kind": "Database",
            "metadata": {"name": "a", "generation": 2},
            "status": {"phase": "Ready", "observedGeneration": 1,
                "conditions": [{"type": "Ready", "status": "True", "reason": "AllChecksPassed"}]}}))
        .unwrap();
        assert!(!Line::of(&object).ready);
        object.data["status"]["observedGeneration"] = 2.into();
        assert!(Line::of(&object).ready);
    }

    #[test]
    fn phases_stand_below_each_other_and_a_move_is_named_once() {
        let line = |phase: &str| Line {
            phase: phase.to_owned(),
            reason: "Because".to_owned(),
            message: "it is so".to_owned(),
            ready: false,
        };
        let moved = line("Configuring").after(&line("Provisioning"));
        assert_eq!(moved, "STATE TRANSITION: Provisioning -> Configuring  Because: it is so");
        let stayed = line("Configuring").after(&line("Configuring"));
        assert_eq!(stayed.find("Configuring"), moved.find("Configuring"));
        assert!(!stayed.contains("TRANSITION"), "{stayed}");
        assert!(line("Pending").after(&Line::default()).contains("New -> Pending"));
    }
}
