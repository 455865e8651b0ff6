//! Objects as an API server keeps them, for the small worlds that controllers are tested in: uids,
//! versions, generations, applies, deletes, finalizers, refusals and crashes.
//!
//! It is no simulator: it carries steps out literally.

#![allow(dead_code, reason = "each world uses its own part")]
#![allow(unreachable_pub, reason = "a module of tests is nobody's interface")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

pub mod play;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use phased::fact::{Question, Reply, SeenEvent, Trouble};
use phased::step::{Apply, Delete, Expect, Finalizer};
use phased::{Answer, Live, ObjectId, Settings, StatusWrite, StepTrouble, Want};
use serde_json::{Value, json};

/// Everything that the API server knows.
#[derive(Clone)]
pub struct Stored {
    pub root: Value,
    pub objects: BTreeMap<ObjectId, Value>,
    pub unreadable: BTreeMap<ObjectId, Trouble>,
    pub events: Vec<SeenEvent>,
    pub refuses: BTreeMap<ObjectId, Trouble>,
    pub settings: Settings,
    pub now: Timestamp,
    pub counter: u64,
    pub writes: Vec<String>,
    pub gone: bool,
    /// What the watches do not show although it exists.
    pub unseen: BTreeSet<ObjectId>,
    /// The pass ends before or after the write of this number, once.
    pub crash_at: Option<(usize, bool)>,
}

impl Stored {
    pub fn of(mut root: Value) -> Self {
        root["metadata"]["uid"] = json!("uid-root");
        root["metadata"]["resourceVersion"] = json!("1");
        root["metadata"]["generation"] = json!(1);
        root["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        Self {
            root,
            objects: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            events: Vec::new(),
            refuses: BTreeMap::new(),
            settings: Settings::default(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            counter: 1,
            writes: Vec::new(),
            gone: false,
            unseen: BTreeSet::new(),
            crash_at: None,
        }
    }

    pub fn phase(&self) -> &str {
        self.root["status"]["phase"].as_str().unwrap_or("")
    }

    /// Status, reason and message.
    pub fn condition(&self, kind: &str) -> (String, String, String) {
        let all = self.root["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|c| c["type"] == kind).unwrap_or(Value::Null);
        let text = |key: &str| one[key].as_str().unwrap_or("").to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// `phase/Ready's status/Ready's reason`.
    pub fn story(&self) -> String {
        let (status, reason, _) = self.condition("Ready");
        format!("{}/{status}/{reason}", self.phase())
    }

    pub fn live(&self, id: &ObjectId) -> Option<Live> {
        self.objects.get(id).map(|v| Live::new(v.clone()).unwrap())
    }

    /// Changes the spec, as an admitted edit.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let before = self.root["spec"].clone();
        change(&mut self.root);
        let version = self.next();
        self.root["metadata"]["resourceVersion"] = json!(version);
        if self.root["spec"] != before {
            let generation = self.root["metadata"]["generation"].as_i64().unwrap() + 1;
            self.root["metadata"]["generation"] = json!(generation);
        }
    }

    /// Changes an object behind the operator's back.
    pub fn meddle(&mut self, id: &ObjectId, change: impl FnOnce(&mut Value)) {
        let mut object = self.objects[id].clone();
        change(&mut object);
        self.store(id, object);
    }

    pub fn advance(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    pub fn next(&mut self) -> String {
        self.counter += 1;
        self.counter.to_string()
    }

    /// Stores an object as the API server would: uid, version, generation.
    pub fn store(&mut self, id: &ObjectId, mut object: Value) {
        let before = self.objects.get(id);
        if before == Some(&object) {
            return;
        }
        let spec_changed = before.is_none_or(|b| b["spec"] != object["spec"]);
        let generation = before.map_or(0, |b| b["metadata"]["generation"].as_i64().unwrap_or(0));
        let version = self.next();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{version}"));
        }
        object["metadata"]["name"] = json!(id.name);
        object["metadata"]["namespace"] = json!(id.namespace);
        object["metadata"]["resourceVersion"] = json!(version);
        object["metadata"]["generation"] = json!(generation + i64::from(spec_changed));
        self.objects.insert(id.clone(), object);
    }

    /// Objects that the watches select by `shows` and that the controller wants.
    pub fn wanted(
        &self,
        wants: &[Want],
        shows: impl Fn(&ObjectId, &Live) -> bool,
    ) -> BTreeMap<ObjectId, Live> {
        let asked = |id: &ObjectId, live: &Live| {
            wants.iter().any(|want| match want {
                Want::Named(named) => named == id,
                Want::Labelled { kind, namespace, labels } => {
                    *kind == id.kind
                        && *namespace == id.namespace
                        && labels.iter().all(|(k, v)| live.label(k) == Some(v))
                }
            })
        };
        self.objects
            .keys()
            .filter_map(|id| self.live(id).map(|live| (id.clone(), live)))
            .filter(|(id, live)| shows(id, live) && asked(id, live) && !self.unseen.contains(id))
            .collect()
    }

    /// Answers questions to the API server.
    pub fn answer(&self, question: &Question) -> Option<Answer> {
        match question {
            Question::Object(id) => Some(match self.unreadable.get(id) {
                Some(trouble) => Err(trouble.clone()),
                None => Ok(Reply::Object(self.live(id))),
            }),
            Question::Events { about, .. } => Some(Ok(Reply::Events(
                self.events.iter().filter(|e| about.contains(&e.about)).cloned().collect(),
            ))),
            _ => None,
        }
    }

    pub fn refuse(&self, id: &ObjectId, verb: &str) -> Result<(), Box<StepTrouble>> {
        match self.refuses.get(id) {
            Some(trouble) => Err(Box::new(StepTrouble {
                id: id.clone(),
                verb: verb.to_owned(),
                trouble: trouble.clone(),
            })),
            None => Ok(()),
        }
    }

    pub fn apply(&mut self, apply: &Apply) {
        let before = self.objects.get(&apply.id).cloned();
        match (&apply.expect, &before) {
            (Expect::Absent, live) => assert!(live.is_none(), "{} exists", apply.id),
            (Expect::Uid(uid), live) => {
                assert_eq!(live.as_ref().unwrap()["metadata"]["uid"], uid.as_str());
            }
        }
        let mut object = before.clone().unwrap_or_else(|| json!({}));
        if let (Some(owners), Some(new)) = (
            object["metadata"]["ownerReferences"].as_array().cloned(),
            apply.intent["metadata"]["ownerReferences"].as_array(),
        ) && owners != *new
        {
            object["metadata"]["ownerReferences"] = json!([]);
        }
        if apply.id.kind.kind == "Service" && apply.intent["spec"].get("selector").is_some() {
            // What is no longer declared goes.
            object["spec"]["selector"] = json!({});
        }
        merge(&mut object, &apply.intent);
        if apply.id.kind.kind == "StatefulSet" {
            for field in ["template", "volumeClaimTemplates"] {
                let before = before.as_ref().map(|set| &set["spec"][field]);
                keep(&mut object["spec"][field], before, &apply.intent["spec"][field]);
            }
        }
        self.store(&apply.id, object);
        self.writes.push(format!("apply {}", apply.id));
    }

    pub fn delete(&mut self, delete: &Delete) {
        let live = self.live(&delete.id).unwrap();
        assert_eq!(live.uid(), delete.uid);
        self.objects.remove(&delete.id);
        self.writes.push(format!("delete {}", delete.id));
    }

    pub fn put_finalizer(&mut self, finalizer: &Finalizer) {
        let mut list: Vec<String> =
            serde_json::from_value(self.root["metadata"]["finalizers"].clone()).unwrap_or_default();
        match finalizer {
            Finalizer::Add(name) => list.push((*name).to_owned()),
            Finalizer::Remove(name) => list.retain(|f| f != name),
        }
        let deleted = self.root["metadata"].get("deletionTimestamp").is_some();
        self.gone = deleted && list.is_empty();
        self.root["metadata"]["finalizers"] = json!(list);
        let version = self.next();
        self.root["metadata"]["resourceVersion"] = json!(version);
        self.writes.push("finalizer".to_owned());
    }

    /// Whether the operator ends now: before the write that would be next, or after the last.
    pub fn crashes(&mut self, before: bool) -> bool {
        let Some((at, wanted)) = self.crash_at else { return false };
        let reached = if before { self.writes.len() == at } else { self.writes.len() == at + 1 };
        let crash = wanted == before && reached;
        if crash {
            self.crash_at = None;
            // What was planned and not done must be planned again.
            self.writes.push("crash".to_owned());
        }
        crash
    }

    /// Writes a status; conditions of types other than `ours` stay.
    pub fn report(&mut self, write: &StatusWrite, ours: &[&str], root_changed: bool) {
        if !root_changed {
            assert_eq!(write.resource_version, self.root["metadata"]["resourceVersion"]);
        }
        let others: Vec<Value> = self.root["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|c| !ours.contains(&c["type"].as_str().unwrap()))
            .cloned()
            .collect();
        self.root["status"] = write.status.clone();
        if let Some(all) = self.root["status"]["conditions"].as_array_mut() {
            all.extend(others);
        }
        let version = self.next();
        self.root["metadata"]["resourceVersion"] = json!(version);
        self.writes.push(format!("status {}", self.phase()));
    }
}

/// What says already what is declared stays as it is, with all that the server added to it; of a
/// template that changes, annotations that are no longer declared go.
fn keep(merged: &mut Value, before: Option<&Value>, declared: &Value) {
    let annotations = |template: &Value| template["metadata"]["annotations"].clone();
    let wrapped = |value: &Value| json!({"spec": {"value": value}});
    let same = |before: &&Value| {
        phased::compare::difference(&wrapped(declared), &wrapped(before)).is_none()
            && (before.is_array() || annotations(before) == annotations(declared))
    };
    if let Some(before) = before.filter(same) {
        *merged = before.clone();
    } else if let Some(metadata) = merged.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("annotations");
        if annotations(declared).is_object() {
            metadata.insert("annotations".to_owned(), annotations(declared));
        }
    }
}

/// Lays one object over another, as an apply does with the fields in use here.
pub fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
