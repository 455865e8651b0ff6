//! Events about pods, as a kubelet and a scheduler write them: the same event again raises its count.
//! Writing happens in a task of its own, so that no container waits for it; what overflows is dropped.

use crate::status::now;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// Events that may wait to be written.
const QUEUE: usize = 512;
/// Events whose count is remembered; beyond that counting starts anew.
const REMEMBERED: usize = 4096;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Speaker {
    /// The part that places pods.
    Scheduler,
    /// The part that runs them.
    Kubelet,
}

/// Whether an event reports trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As expected.
    Normal,
    /// Trouble.
    Warning,
}

struct Note {
    speaker: Speaker,
    tone: Tone,
    about: ObjectReference,
    reason: &'static str,
    message: String,
}

/// Takes events to be written.
#[derive(Debug, Clone)]
pub(crate) struct Recorder(mpsc::Sender<Note>);

impl Recorder {
    /// A recorder and the task that writes.
    pub(crate) fn new(client: Client, node: String) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), write_all(client, node, receiver))
    }

    /// An event about a container of a pod.
    pub(crate) fn container(
        &self,
        pod: &Pod,
        name: &str,
        tone: Tone,
        reason: &'static str,
        message: String,
    ) {
        let mut about = reference(pod);
        about.field_path = Some(format!("spec.containers{{{name}}}"));
        // A full queue, or a node that is stopping: Events are lost rather than waited for.
        let _ = self.0.try_send(Note { speaker: Speaker::Kubelet, tone, about, reason, message });
    }

    /// An event about a pod.
    pub(crate) fn pod(
        &self,
        speaker: Speaker,
        pod: &Pod,
        tone: Tone,
        reason: &'static str,
        message: String,
    ) {
        // A full queue, or a node that is stopping: Events are lost rather than waited for.
        let _ = self.0.try_send(Note { speaker, tone, about: reference(pod), reason, message });
    }
}

fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: pod.metadata.name.clone(),
        namespace: pod.metadata.namespace.clone(),
        uid: pod.metadata.uid.clone(),
        resource_version: pod.metadata.resource_version.clone(),
        field_path: None,
    }
}

struct Written {
    name: String,
    count: i32,
}

async fn write_all(client: Client, node: String, mut notes: mpsc::Receiver<Note>) {
    let mut written: BTreeMap<String, Written> = BTreeMap::new();
    let mut number = 0_u32;
    while let Some(note) = notes.recv().await {
        let namespace = note.about.namespace.clone().unwrap_or_default();
        let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
        let key = format!(
            "{}|{}|{}|{}",
            note.about.uid.as_deref().unwrap_or_default(),
            note.about.field_path.as_deref().unwrap_or_default(),
            note.reason,
            note.message
        );
        if let Some(again) = written.get_mut(&key) {
            again.count += 1;
            let patch = serde_json::json!({"count": again.count, "lastTimestamp": Time(now())});
            if events
                .patch(&again.name, &PatchParams::default(), &Patch::Merge(patch))
                .await
                .is_ok()
            {
                continue;
            }
        }
        number += 1;
        let event = event(note, &node, number);
        let name = event.metadata.name.clone().unwrap_or_default();
        match events.create(&PostParams::default(), &event).await {
            Ok(_) => {
                if written.len() >= REMEMBERED {
                    written.clear();
                }
                written.insert(key, Written { name, count: 1 });
            }
            Err(error) => {
                tracing::debug!(%error, reason = event.reason, "an event could not be written")
            }
        }
    }
}

fn event(note: Note, node: &str, number: u32) -> Event {
    let moment = now();
    let name = note.about.name.clone().unwrap_or_default();
    let unique = Timestamp::now().as_nanosecond();
    let component = match note.speaker {
        Speaker::Scheduler => "default-scheduler",
        Speaker::Kubelet => "kubelet",
    };
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{unique:x}{number:x}")),
            namespace: note.about.namespace.clone(),
            ..ObjectMeta::default()
        },
        involved_object: note.about,
        reason: Some(note.reason.to_owned()),
        message: Some(note.message),
        type_: Some(if note.tone == Tone::Warning { "Warning" } else { "Normal" }.to_owned()),
        count: Some(1),
        first_timestamp: Some(Time(moment)),
        last_timestamp: Some(Time(moment)),
        source: Some(EventSource {
            component: Some(component.to_owned()),
            host: (note.speaker == Speaker::Kubelet).then(|| node.to_owned()),
        }),
        reporting_component: Some(component.to_owned()),
        reporting_instance: Some(node.to_owned()),
        ..Event::default()
    }
}
