//! Events about resources, published from a bounded queue.
//!
//! Never holds a pass up and never fails one. Each Event is said once: it goes with a status
//! write or a revert, not with every pass.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use phased::fact::Fate;
use phased::{EventNote, KindRef, Live, ObjectId, digest};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::api::Server;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::trouble::ApiError;

/// Takes Events in.
#[derive(Clone)]
pub struct Reporter {
    sender: mpsc::Sender<(ObjectId, Event)>,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    instance: String,
    reminded: Arc<Mutex<BTreeSet<String>>>,
}

/// How many reminders are remembered; then all are forgotten, and said once more.
const REMINDERS: usize = 1024;

/// How many Events may wait: a burst of transitions of a few hundred resources. More are dropped
/// and counted; the status holds the truth either way.
const QUEUE: usize = 1024;

/// How long queued Events hold a stop up; the rest is dropped and counted.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The longest note that the API takes, in bytes.
const NOTE_LIMIT: usize = 1024;

const EVENT: KindRef = KindRef {
    group: "events.k8s.io",
    version: "v1",
    kind: "Event",
    plural: "events",
    namespaced: true,
};

/// The queue's other end.
pub struct Outbox {
    receiver: mpsc::Receiver<(ObjectId, Event)>,
    metrics: Metrics,
    /// Whether one has been taken and its answer is awaited.
    in_hand: bool,
}

impl Reporter {
    /// A reporter named `instance`, and the outbox to run.
    pub fn new(clock: Arc<dyn Clock>, metrics: Metrics, instance: &str) -> (Self, Outbox) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let reporter = Self {
            sender,
            clock,
            metrics: metrics.clone(),
            instance: instance.to_owned(),
            reminded: Arc::default(),
        };
        (reporter, Outbox { receiver, metrics, in_hand: false })
    }

    /// Queues one Event about the resource.
    pub(crate) fn publish(&self, id: &ObjectId, root: &Live, note: &EventNote) {
        let now = self.clock.now();
        let event = self.event(id, root, note, now);
        let name = event.metadata.name.clone().unwrap_or_default();
        let event_id = ObjectId::new(EVENT, namespace_of(id), name);
        if self.sender.try_send((event_id, event)).is_err() {
            self.metrics.event_dropped();
        }
    }

    /// Queues one Event about something that each pass meets again, once an hour.
    pub(crate) fn remind(&self, id: &ObjectId, root: &Live, note: &EventNote) {
        let hour = self.clock.now().as_second() / 3600;
        let what = digest::of(&json!([root.uid(), note.reason, note.message, hour]));
        let mut reminded = self.reminded.lock().unwrap_or_else(PoisonError::into_inner);
        if reminded.len() >= REMINDERS {
            reminded.clear();
        }
        if reminded.insert(what) {
            self.publish(id, root, note);
        }
    }

    fn event(&self, id: &ObjectId, root: &Live, note: &EventNote, now: Timestamp) -> Event {
        Event {
            metadata: ObjectMeta {
                name: Some(name_of(id, root, note, now)),
                namespace: Some(namespace_of(id)),
                ..ObjectMeta::default()
            },
            action: Some(note.action.to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(cut(&note.message)),
            reason: Some(note.reason.to_owned()),
            regarding: Some(ObjectReference {
                api_version: Some(id.kind.api_version()),
                kind: Some(id.kind.kind.to_owned()),
                name: Some(id.name.clone()),
                namespace: Some(id.namespace.clone()),
                uid: Some(root.uid().to_owned()),
                resource_version: Some(root.resource_version().to_owned()),
                ..ObjectReference::default()
            }),
            reporting_controller: Some("steadfast".to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        }
    }
}

impl Outbox {
    /// Publishes until `stop`; then what is queued, for at most [`LAST_WORDS`].
    pub async fn run(mut self, server: Server, stop: CancellationToken) {
        let last_words = async {
            stop.cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            biased;
            () = last_words => {}
            () = self.publish(&server, &stop) => {}
        }
        if self.in_hand {
            self.metrics.event_dropped();
        }
        self.receiver.close();
        while self.receiver.recv().await.is_some() {
            self.metrics.event_dropped();
        }
    }

    async fn publish(&mut self, server: &Server, stop: &CancellationToken) {
        loop {
            let next = tokio::select! {
                biased;
                next = self.receiver.recv() => next,
                () = stop.cancelled() => return,
            };
            let Some((id, event)) = next else { return };
            self.in_hand = true;
            if let Err(error) = send(server, &id, event).await {
                self.metrics.event_dropped();
                tracing::debug!(%error, event = %id, "Event not published");
            }
            self.in_hand = false;
        }
    }
}

async fn send(server: &Server, id: &ObjectId, event: Event) -> Result<(), ApiError> {
    let wrong =
        |error: serde_json::Error| ApiError::of(Fate::WeAreWrong, "BadEvent", error.to_string());
    let mut object = serde_json::to_value(event).map_err(wrong)?;
    object["apiVersion"] = json!(EVENT.api_version());
    object["kind"] = json!(EVENT.kind);
    match server.create(id, object, "steadfast").await {
        // A name that is taken is this same Event, sent before an answer was lost.
        Ok(_) | Err(ApiError::LookAgain(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn namespace_of(id: &ObjectId) -> String {
    if id.namespace.is_empty() { "default".to_owned() } else { id.namespace.clone() }
}

/// `<name>.<time in hex>-<digest>`: unique for what it says, and when.
fn name_of(id: &ObjectId, root: &Live, note: &EventNote, now: Timestamp) -> String {
    let content = digest::of(&json!([root.uid(), note.reason, note.message, note.action]));
    let micros = now.as_microsecond();
    let mut name = id.name.clone();
    name.truncate(200);
    format!("{name}.{micros:x}-{}", &content[..8])
}

fn cut(message: &str) -> String {
    if message.len() <= NOTE_LIMIT {
        return message.to_owned();
    }
    let mut end = NOTE_LIMIT - 3;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &message[..end])
}
