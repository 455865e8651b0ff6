//! Watches on everything that an edit of a Database changes.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::StreamExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use tokio::task::JoinHandle;

use crate::real::Bench;

/// Name of the Database.
pub(crate) const NAME: &str = "test-db";
/// What is compared, and watched for changes.
pub(crate) const RESOURCES: [(&str, &str, &str); 7] = [
    ("apps", "StatefulSet", "statefulsets"),
    ("", "Service", "services"),
    ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("", "ConfigMap", "configmaps"),
    ("", "Secret", "secrets"),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("", "Pod", "pods"),
];

/// What watches have shown.
pub(crate) struct Activity {
    pub(crate) last: Instant,
    pub(crate) gone: Vec<String>,
    pub(crate) phases: Vec<String>,
}

/// Follows what changes in the namespace.
pub(crate) fn follow(bench: &Bench, activity: &Arc<Mutex<Activity>>) -> Vec<JoinHandle<()>> {
    let mut watches = Vec::new();
    for (group, kind, plural) in RESOURCES {
        watches.push(note(bench.api(group, kind, plural), kind, activity.clone()));
    }
    watches.push(note(bench.databases(), "Database", activity.clone()));
    watches
}

fn note(
    api: Api<DynamicObject>,
    kind: &'static str,
    activity: Arc<Mutex<Activity>>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut events = watcher(api, watcher::Config::default()).boxed();
        while let Some(event) = events.next().await {
            let (object, gone) = match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => (object, false),
                Ok(Event::Delete(object)) => (object, true),
                Ok(Event::Init | Event::InitDone) | Err(_) => continue,
            };
            let name = object.metadata.name.as_deref().unwrap_or_default();
            if !name.contains(NAME) {
                continue;
            }
            let mut seen = activity.lock().expect("nobody panics with it");
            seen.last = Instant::now();
            if gone && kind == "Pod" {
                seen.gone.push(name.to_owned());
            }
            let phase = object.data["status"]["phase"].as_str().unwrap_or_default().to_owned();
            if kind == "Database" && !phase.is_empty() && seen.phases.last() != Some(&phase) {
                seen.phases.push(phase);
            }
        }
    })
}
