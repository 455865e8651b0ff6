//! The objects of a forecast: what the snapshot showed, and what was made of it since.
//!
//! Must not decide anything; it keeps versions, uids and generations as a server does.

use std::collections::BTreeMap;

use jiff::Timestamp;
use phased::{KindRef, Live, ObjectId, Trigger, Want, Watch};
use serde_json::{Value, json};

/// Prefix of uids that no server gave.
const FORECAST_UID: &str = "forecast-";

/// Objects by name.
#[derive(Clone, Debug, Default)]
pub struct World {
    objects: BTreeMap<ObjectId, Live>,
    counter: u64,
}

impl World {
    /// A world of these objects.
    pub fn of(objects: BTreeMap<ObjectId, Live>) -> Self {
        Self { objects, counter: 0 }
    }

    /// One object.
    pub fn get(&self, id: &ObjectId) -> Option<&Live> {
        self.objects.get(id)
    }

    /// All objects, in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = (&ObjectId, &Live)> {
        self.objects.iter()
    }

    /// All objects of a kind, in the order of their names.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a ObjectId, &'a Live)> {
        self.objects.iter().filter(move |(id, _)| id.kind.kind == kind)
    }

    /// Stores an object as the server does: a new version, for a new name a uid and generation 1,
    /// for a changed spec the next generation.
    pub fn put(&mut self, id: &ObjectId, mut value: Value, now: Timestamp) -> Option<Live> {
        self.counter += 1;
        let before = self.objects.get(id);
        let metadata = &mut value["metadata"];
        metadata["resourceVersion"] = json!(format!("{FORECAST_UID}{}", self.counter));
        match before {
            None => {
                metadata["uid"] = json!(format!("{FORECAST_UID}{}", self.counter));
                metadata["generation"] = json!(1);
                metadata["creationTimestamp"] = json!(second(now));
            }
            Some(before) if before.value["spec"] != value["spec"] => {
                let generation = before.metadata.generation.unwrap_or(1);
                value["metadata"]["generation"] = json!(generation + 1);
            }
            Some(_) => {}
        }
        let live = Live::new(value).ok()?;
        self.objects.insert(id.clone(), live.clone());
        Some(live)
    }

    /// Removes an object.
    pub fn remove(&mut self, id: &ObjectId) -> Option<Live> {
        self.objects.remove(id)
    }

    /// Takes an owner's name off an object, as the garbage collector does once the owner is gone.
    pub(crate) fn orphan(&mut self, id: &ObjectId, owner: &str, now: Timestamp) {
        let Some(mut value) = self.objects.get(id).map(|live| live.value.clone()) else { return };
        if let Some(owners) = value["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|one| one["uid"] != owner);
        }
        self.put(id, value, now);
    }

    /// What a snapshot shows: the wanted objects, as far as a watch of their kind selects them.
    pub fn select(&self, wants: &[Want], watches: &[Watch]) -> BTreeMap<ObjectId, Live> {
        let wanted = |id: &ObjectId, live: &Live| {
            wants.iter().any(|want| match want {
                Want::Named(name) => name == id,
                Want::Labelled { kind, namespace, labels } => {
                    *kind == id.kind
                        && *namespace == id.namespace
                        && labels.iter().all(|(k, v)| live.label(k) == Some(v.as_str()))
                }
            })
        };
        self.objects
            .iter()
            .filter(|(id, live)| wanted(id, live) && is_watched(watches, id.kind, live))
            .map(|(id, live)| (id.clone(), live.clone()))
            .collect()
    }
}

/// Whether a watch that keeps what it sees shows this object.
pub fn is_watched(watches: &[Watch], kind: KindRef, live: &Live) -> bool {
    watches.iter().any(|watch| {
        watch.kind == kind
            && !matches!(watch.trigger, Trigger::NameSuffix(_))
            && watch.selector.as_deref().is_none_or(|selector| matches(selector, live))
    })
}

/// Equality selectors, the only ones that watches use.
fn matches(selector: &str, live: &Live) -> bool {
    selector.split(',').all(|part| match part.split_once('=') {
        Some((key, value)) => live.label(key) == Some(value),
        None => live.label(part).is_some(),
    })
}

/// Whether a uid was given here and not by a server.
pub fn is_forecast(uid: &str) -> bool {
    uid.starts_with(FORECAST_UID)
}

/// A time as objects carry it.
pub(crate) fn second(now: Timestamp) -> String {
    phased::condition::whole_second(now).to_string()
}
