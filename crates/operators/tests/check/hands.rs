//! Carries steps out on the objects of a [`World`], as the runner does on a cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use operators::database::KIND;
use phased::fact::Trouble;
use phased::step::{ExecRequest, Generate, Propagation, Request, Step, TextPiece};
use phased::{ObjectId, StepTrouble};
use serde_json::{Value, json};

use super::{World, decode, merge};

impl World {
    pub fn do_step(&mut self, step: &Step) -> Result<bool, Box<StepTrouble>> {
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
                self.delete(delete);
                let orphans = delete.propagation == Propagation::Orphan;
                let set = delete.id == self.names().stateful_set();
                // The garbage collector's part.
                if set && !orphans && !self.pods_linger {
                    self.stored.objects.remove(&self.names().primary_pod());
                }
                for ordinal in (0..16).filter(|_| set && orphans) {
                    let pod = self.names().pod(ordinal);
                    if self.objects.contains_key(&pod) {
                        self.meddle(&pod, |pod| {
                            pod["metadata"].as_object_mut().unwrap().remove("ownerReferences");
                        });
                    }
                }
            }
            Step::Finalizer(finalizer) => {
                self.put_finalizer(finalizer);
                return Ok(true);
            }
            Step::Act(action) => {
                self.writes.push(format!("act {}", action.name));
                let done = match &action.request {
                    Request::Sql(request) => self.server.change(&self.stored.objects, request),
                    Request::Exec(request) => self.exec(request),
                    Request::ZooKeeper(_) => panic!("{action:?}"),
                };
                if let Err(trouble) = done {
                    let id = ObjectId::new(KIND, "default", "test-db");
                    let verb = action.name.to_owned();
                    return Err(Box::new(StepTrouble { id, verb, trouble }));
                }
            }
        }
        Ok(false)
    }

    /// A command in the primary's container: its pod is named by uid, and stays.
    fn exec(&mut self, request: &ExecRequest) -> Result<(), Trouble> {
        assert_eq!(request.pod, self.names().primary_pod());
        let pod = &self.objects[&request.pod];
        assert_eq!(pod["metadata"]["uid"], request.uid.as_str());
        assert!(pod["metadata"]["deletionTimestamp"].is_null(), "{pod}");
        if let Some(trouble) = &self.exec_trouble {
            return Err(trouble.clone());
        }
        self.server.exec(&self.stored.objects, request)
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
