//! Carries steps out on the objects of a [`World`], as the runner does on a cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use operators::database::KIND;
use phased::step::{Apply, Expect, Finalizer, Generate, Propagation, Step, TextPiece};
use phased::{ObjectId, StepTrouble};
use serde_json::{Value, json};

use super::{World, decode, merge};

impl World {
    pub fn carry_out(&mut self, step: &Step) -> Result<bool, Box<StepTrouble>> {
        match step {
            Step::Apply(apply) => self.refuse(&apply.id, "patch").map(|()| self.apply(apply))?,
            Step::CreateOnce(create) => {
                self.refuse(&create.id, "create")?;
                assert!(!self.objects.contains_key(&create.id), "{} exists", create.id);
                let mut object = create.template.clone();
                object["data"] = json!({});
                for value in &create.generate {
                    let (key, text) = self.generate(value, &object);
                    object["data"][key] = json!(STANDARD.encode(text));
                }
                self.store(&create.id, object);
                self.writes.push(format!("create {}", create.id));
            }
            Step::Derive(derive) => {
                self.refuse(&derive.id, "patch")?;
                let mut object = self.objects[&derive.id].clone();
                assert_eq!(object["metadata"]["uid"], derive.uid.as_str());
                merge(&mut object, &derive.intent);
                for (key, pieces) in &derive.keys {
                    let text = resolve(pieces, &object);
                    object["data"][key] = json!(STANDARD.encode(text));
                }
                self.store(&derive.id, object);
                self.writes.push(format!("derive {}", derive.id));
            }
            Step::Delete(delete) => {
                self.refuse(&delete.id, "delete")?;
                let live = self.live(&delete.id).unwrap();
                assert_eq!(live.uid(), delete.uid);
                self.objects.remove(&delete.id);
                let orphans = delete.propagation == Propagation::Orphan;
                if !orphans && delete.id == self.names().stateful_set() && !self.pods_linger {
                    // The garbage collector's part.
                    self.objects.remove(&self.names().primary_pod());
                }
                self.writes.push(format!("delete {}", delete.id));
            }
            Step::Finalizer(finalizer) => {
                self.put_finalizer(finalizer);
                return Ok(true);
            }
            Step::Act(action) => {
                self.writes.push(format!("act {}", action.name));
                if let Err(trouble) = self.server.change(&self.objects, &action.request) {
                    let id = ObjectId::new(KIND, "default", "test-db");
                    let verb = action.name.to_owned();
                    return Err(Box::new(StepTrouble { id, verb, trouble }));
                }
            }
        }
        Ok(false)
    }

    fn refuse(&self, id: &ObjectId, verb: &str) -> Result<(), Box<StepTrouble>> {
        match self.refuses.get(id) {
            Some(trouble) => Err(Box::new(StepTrouble {
                id: id.clone(),
                verb: verb.to_owned(),
                trouble: trouble.clone(),
            })),
            None => Ok(()),
        }
    }

    fn apply(&mut self, apply: &Apply) {
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
        self.store(&apply.id, object);
        self.writes.push(format!("apply {}", apply.id));
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

    fn put_finalizer(&mut self, finalizer: &Finalizer) {
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

    fn generate(&mut self, value: &Generate, object: &Value) -> (String, String) {
        match value {
            Generate::Password { key, length } => {
                assert!(*length >= 24);
                let number = self.next();
                (key.clone(), format!("made-{number:0>width$}", width = length - 5))
            }
            Generate::Text { key, pieces } => (key.clone(), resolve(pieces, object)),
        }
    }
}

fn resolve(pieces: &[TextPiece], object: &Value) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const RESERVED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let text = |piece: &TextPiece| match piece {
        TextPiece::Plain(text) => text.clone(),
        TextPiece::Generated(key) => {
            utf8_percent_encode(&decode(&object["data"][key]), RESERVED).to_string()
        }
    };
    pieces.iter().map(text).collect()
}
