//! Steps of a plan, carried out on the stage as the server would.
//!
//! Must not decide what to write; that came with the step.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use phased::fact::Fate;
use phased::step::{
    Apply, CreateOnce, Delete, Derive, Expect, Finalizer, Generate, Propagation, Step, text,
};
use phased::{Live, ObjectId, StepTrouble, Trouble};
use serde_json::{Value, json};

use crate::happening::{Happening, Wrote};
use crate::stage::{Carried, Stage};
use crate::storing::stored;
use crate::{apply, change};

/// Stands for a password that the operator makes up.
const MADE_UP: &str = "made-up-by-the-operator-0000000000";

/// Fields of a StatefulSet's spec that may change.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

impl Stage {
    pub(crate) fn carry(&mut self, step: &Step) -> Carried {
        match step {
            Step::Apply(step) => self.apply(step),
            Step::CreateOnce(step) => self.create_once(step),
            Step::Derive(step) => self.derive(step),
            Step::Delete(step) => self.delete(step),
            Step::Finalizer(step) => self.finalizer(step),
            Step::Act(action) => {
                self.done.push(action.clone());
                self.log.push(Happening::Acted {
                    name: action.name,
                    gate: action.gate,
                    why: action.why.clone(),
                });
                Carried::Through
            }
        }
    }

    fn apply(&mut self, step: &Apply) -> Carried {
        let before = match self.look(&step.id) {
            Ok(before) => before,
            Err(question) => return Carried::Needs(*question),
        };
        if let (Expect::Absent, Some(live)) = (&step.expect, &before)
            && !self.found.contains_key(&step.id)
        {
            return Carried::Found(step.id.clone(), Box::new(live.clone()));
        }
        let after = match (&before, self.orphaning.remove(&step.id)) {
            (Some(live), _) => apply::merged(&live.value, &step.intent, &self.manager()),
            // Made again under its pods: the server gives it the same defaults as before.
            (None, Some(old)) => apply::merged(&old, &step.intent, &self.manager()),
            (None, None) => step.intent.clone(),
        };
        if let Some(trouble) = before.as_ref().and_then(|live| frozen(&step.id, live, &after)) {
            return Carried::Refused(trouble);
        }
        self.write(&step.id, before, after, (&step.why, Some(&step.intent), &[]))
    }

    fn create_once(&mut self, step: &CreateOnce) -> Carried {
        match self.look(&step.id) {
            Err(question) => return Carried::Needs(*question),
            Ok(Some(live)) => return Carried::Found(step.id.clone(), Box::new(live)),
            Ok(None) => {}
        }
        let mut object = step.template.clone();
        let mut keys = Vec::new();
        for one in &step.generate {
            let (key, value) = match one {
                Generate::Password { key, .. } => (key, MADE_UP.to_owned()),
                Generate::Text { key, pieces } => {
                    (key, text(pieces, |_| Some(MADE_UP.as_bytes().to_vec())))
                }
            };
            object["data"][key] = json!(STANDARD.encode(value));
            keys.push(key.clone());
        }
        self.write(&step.id, None, object, (&step.why, Some(&step.template), &keys))
    }

    fn derive(&mut self, step: &Derive) -> Carried {
        let live = match self.look(&step.id) {
            Err(question) => return Carried::Needs(*question),
            Ok(None) => return Carried::Through,
            Ok(Some(live)) => live,
        };
        let mut intent = step.intent.clone();
        let data = live.value["data"].clone();
        let value_of = |key: &str| STANDARD.decode(data[key].as_str()?).ok();
        for (key, pieces) in &step.keys {
            intent["data"][key] = json!(STANDARD.encode(text(pieces, value_of)));
        }
        let after = apply::merged(&live.value, &intent, &self.manager());
        let keys: Vec<String> = step.keys.iter().map(|(key, _)| key.clone()).collect();
        self.write(&step.id, Some(live), after, (&step.why, Some(&step.intent), &keys))
    }

    fn write(
        &mut self,
        id: &ObjectId,
        before: Option<Live>,
        after: Value,
        (why, intent, generated): (&str, Option<&Value>, &[String]),
    ) -> Carried {
        // A name that was found by a live read becomes a part of the world with the first write.
        if let Some(live) = &before
            && self.world.get(id).is_none()
        {
            self.world.put(id, live.value.clone(), self.seen.now);
        }
        let after = self.world.put(id, stored(after), self.seen.now);
        self.log.push(Happening::Wrote(Box::new(Wrote {
            id: id.clone(),
            before,
            after,
            generated: generated.to_vec(),
            intent: intent.cloned(),
            why: why.to_owned(),
        })));
        Carried::Through
    }

    fn delete(&mut self, step: &Delete) -> Carried {
        let live = match self.look(&step.id) {
            Err(question) => return Carried::Needs(*question),
            Ok(None) => return Carried::Through,
            Ok(Some(live)) => live,
        };
        if live.uid() != step.uid {
            return Carried::Found(step.id.clone(), Box::new(live));
        }
        self.forget(&step.id);
        let owned = self.world.all().filter(|(_, other)| other.is_owned_by(&step.uid));
        let dependants: Vec<ObjectId> = owned.map(|(id, _)| id.clone()).collect();
        if step.propagation == Propagation::Orphan {
            dependants.iter().for_each(|id| self.world.orphan(id, &step.uid, self.seen.now));
            let mut old = live.value.clone();
            old["status"] = Value::Null;
            self.orphaning.insert(step.id.clone(), old);
        } else {
            dependants.iter().for_each(|id| self.forget(id));
        }
        self.log.push(Happening::Wrote(Box::new(Wrote {
            id: step.id.clone(),
            before: Some(live),
            after: None,
            generated: Vec::new(),
            intent: None,
            why: step.why.clone(),
        })));
        Carried::Through
    }

    fn finalizer(&mut self, step: &Finalizer) -> Carried {
        let mut list = self.seen.root.metadata.finalizers.clone().unwrap_or_default();
        match step {
            Finalizer::Add(name) if !list.iter().any(|one| one == name) => {
                list.push((*name).to_owned());
            }
            Finalizer::Add(_) => {}
            Finalizer::Remove(name) => list.retain(|one| one != name),
        }
        let mut value = self.seen.root.value.clone();
        value["metadata"]["finalizers"] = json!(list);
        self.set_root(value);
        Carried::Through
    }
}

/// Why the server would refuse this state of a StatefulSet: all but a few fields are fixed.
fn frozen(id: &ObjectId, live: &Live, after: &Value) -> Option<StepTrouble> {
    if id.kind.kind != "StatefulSet" {
        return None;
    }
    let fixed = |object: &Value| {
        let mut spec = object["spec"].clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|name, _| !MUTABLE.contains(&name.as_str()));
        }
        json!({"spec": spec})
    };
    let changes = change::between(id.kind.kind, &fixed(&live.value), &fixed(after));
    let field = &changes.first()?.field;
    let trouble = Trouble {
        fate: Fate::UserMustAct,
        reason: "Invalid".to_owned(),
        message: format!("{field} of a StatefulSet cannot change"),
    };
    Some(StepTrouble { id: id.clone(), verb: "patch".to_owned(), trouble })
}
