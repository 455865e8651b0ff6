//! Carries out the steps of a plan, in order, up to the first that cannot be.
//!
//! Decides nothing: preconditions come with the step. The rules for each kind of step are
//! design.md section 2, "Children".

use phased::fact::Fate;
use phased::plan::EventNote;
use phased::step::{
    Action, Apply, CreateOnce, Delete, Derive, Expect, Finalizer, Generate, Step, text,
};
use phased::{Live, ObjectId, compare};
use serde_json::{Map, Value, json};

use crate::api::{ApplyMode, Part};
use crate::external::secret_value;
use crate::pass::Means;
use crate::random::{Random, password};
use crate::store::version;
use crate::trouble::ApiError;

/// What steps are carried out with.
pub(crate) struct Hands<'a> {
    pub(crate) means: &'a Means,
    pub(crate) manager: &'a str,
    pub(crate) root: &'a ObjectId,
}

/// What became of a step.
#[derive(Debug)]
pub(crate) enum Done {
    /// Written; the new state, where there is one.
    Written(Option<Live>),
    /// Nothing was to be done.
    Already,
    /// A live read found what the snapshot did not show: plan again with it.
    Found(ObjectId, Live),
}

impl Hands<'_> {
    /// Carries one step out.
    pub(crate) async fn carry_out(&self, step: &Step, root: &Live) -> Result<Done, ApiError> {
        let (verb, kind, result) = match step {
            Step::Apply(s) => ("apply", s.id.kind.kind, self.apply(s, root).await),
            Step::CreateOnce(s) => ("create", s.id.kind.kind, self.create_once(s).await),
            Step::Derive(s) => ("apply", s.id.kind.kind, self.derive(s).await),
            Step::Delete(s) => ("delete", s.id.kind.kind, self.delete(s).await),
            Step::Finalizer(s) => ("patch", self.root.kind.kind, self.finalizer(s, root).await),
            Step::Act(s) => ("act", s.name, self.act(s).await),
        };
        let outcome = match &result {
            Ok(Done::Written(_)) => "ok",
            Ok(_) => "none",
            Err(_) => "error",
        };
        self.means.metrics.wrote(verb, kind, outcome);
        result
    }

    fn keep(&self, id: &ObjectId, live: &Live) {
        self.means.learn(id, live.clone());
    }

    async fn apply(&self, step: &Apply, root: &Live) -> Result<Done, ApiError> {
        let mut intent = step.intent.clone();
        let force = match &step.expect {
            Expect::Absent => {
                if let Some(live) = self.means.server.get(&step.id).await? {
                    return Ok(Done::Found(step.id.clone(), live));
                }
                false
            }
            Expect::Uid(uid) => {
                intent["metadata"]["uid"] = json!(uid);
                true
            }
        };
        let mode = ApplyMode { manager: self.manager, part: Part::Object, force };
        let live = self.means.server.apply(&step.id, &intent, &mode).await?;
        self.keep(&step.id, &live);
        if let Some(field) = compare::difference(&step.intent, &live.value) {
            self.tell_not_kept(&step.id, &field.spelled(&live.value), root);
        }
        Ok(Done::Written(Some(live)))
    }

    /// A field that we sent is not in the answer: an older server drops it, or an admission webhook
    /// changes it. It is not sent again and again, so this is where it is told.
    fn tell_not_kept(&self, id: &ObjectId, field: &str, root: &Live) {
        tracing::warn!(object = %id, field, "the API server did not keep a field as it was sent");
        self.means.metrics.not_kept(id.kind.kind);
        let note = EventNote {
            warning: true,
            reason: "FieldNotKept",
            action: "Apply",
            message: format!(
                "{id}: the API server did not keep {field} as it was sent; an older server or an \
                 admission webhook changes it"
            ),
        };
        self.means.reporter.remind(self.root, root, &note);
    }

    async fn create_once(&self, step: &CreateOnce) -> Result<Done, ApiError> {
        if let Some(live) = self.means.server.get(&step.id).await? {
            return Ok(Done::Found(step.id.clone(), live));
        }
        let mut object = step.template.clone();
        let values = generate(&step.generate, self.means.random.as_ref());
        if !values.is_empty() {
            object["data"] = Value::Object(encode(values));
        }
        let live = self.means.server.create(&step.id, object, self.manager).await?;
        self.keep(&step.id, &live);
        Ok(Done::Written(Some(live)))
    }

    async fn derive(&self, step: &Derive) -> Result<Done, ApiError> {
        let gone = || ApiError::LookAgain(format!("{} is not there any more", step.id));
        let live = self.means.server.get(&step.id).await?.ok_or_else(gone)?;
        if live.uid() != step.uid {
            return Err(ApiError::LookAgain(format!("{} was made anew", step.id)));
        }
        let values = step.keys.iter().map(|(key, pieces)| {
            let value = text(pieces, |from| secret_value(&live.value, from));
            (key.clone(), value.into_bytes())
        });
        let mut intent = step.intent.clone();
        intent["metadata"]["uid"] = json!(step.uid);
        intent["data"] = Value::Object(encode(values.collect()));
        let mode = ApplyMode { manager: self.manager, part: Part::Object, force: true };
        let live = self.means.server.apply(&step.id, &intent, &mode).await?;
        self.keep(&step.id, &live);
        Ok(Done::Written(Some(live)))
    }

    async fn delete(&self, step: &Delete) -> Result<Done, ApiError> {
        match self.means.server.get(&step.id).await? {
            Some(live) if live.uid() == step.uid => {}
            Some(live) => return Ok(Done::Found(step.id.clone(), live)),
            None => {
                self.means.store.remove(&step.id, &step.uid, 0);
                return Ok(Done::Already);
            }
        }
        match self.means.server.delete(step).await {
            Ok(()) => {}
            Err(ApiError::NotFound) => return Ok(Done::Already),
            Err(error) => return Err(error),
        }
        match self.means.server.get(&step.id).await? {
            Some(live) => self.keep(&step.id, &live),
            None => {
                let known = self.means.store.get(&step.id).map_or(0, |live| version(&live));
                self.means.store.remove(&step.id, &step.uid, known);
            }
        }
        Ok(Done::Written(None))
    }

    /// Changes our finalizer under a test of the version: foreign finalizers that came or went
    /// meanwhile are never overwritten (fault catalogue G-44, G-45).
    async fn finalizer(&self, step: &Finalizer, root: &Live) -> Result<Done, ApiError> {
        let mut list = root.metadata.finalizers.clone().unwrap_or_default();
        match step {
            Finalizer::Add(name) => {
                if root.deletion_time().is_some() || list.iter().any(|f| f == name) {
                    return Ok(Done::Already);
                }
                list.push((*name).to_owned());
            }
            Finalizer::Remove(name) => {
                let before = list.len();
                list.retain(|f| f != name);
                if list.len() == before {
                    return Ok(Done::Already);
                }
            }
        }
        let patch = serde_json::from_value(json!([
            {"op": "test", "path": "/metadata/uid", "value": root.uid()},
            {"op": "test", "path": "/metadata/resourceVersion", "value": root.resource_version()},
            {"op": "add", "path": "/metadata/finalizers", "value": list},
        ]))
        .map_err(|e| ApiError::of(Fate::WeAreWrong, "BadPatch", e.to_string()))?;
        match self.means.server.json_patch(self.root, patch, self.manager).await {
            Ok(live) => {
                self.keep(self.root, &live);
                Ok(Done::Written(Some(live)))
            }
            Err(ApiError::NotFound) => Ok(Done::Already),
            Err(error) => Err(error),
        }
    }

    async fn act(&self, action: &Action) -> Result<Done, ApiError> {
        tracing::info!(action = action.name, gate = action.gate, why = %action.why, "acting");
        match self.means.outside.act(action).await {
            Ok(()) => Ok(Done::Written(None)),
            Err(trouble) => Err(ApiError::Trouble { trouble, retry_after: None }),
        }
    }
}

/// Makes up the values of a new Secret. Texts may refer to passwords made before them.
fn generate(wanted: &[Generate], random: &dyn Random) -> Vec<(String, Vec<u8>)> {
    let mut made: Vec<(String, Vec<u8>)> = Vec::new();
    for one in wanted {
        let (key, value) = match one {
            Generate::Password { key, length } => {
                (key, password(random, (*length).max(24)).into_bytes())
            }
            Generate::Text { key, pieces } => {
                let find =
                    |from: &str| made.iter().find(|(k, _)| k == from).map(|(_, v)| v.clone());
                (key, text(pieces, find).into_bytes())
            }
        };
        made.push((key.clone(), value));
    }
    made
}

fn encode(values: Vec<(String, Vec<u8>)>) -> Map<String, Value> {
    use base64::Engine;
    let engine = base64::engine::general_purpose::STANDARD;
    values.into_iter().map(|(key, value)| (key, json!(engine.encode(value)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededRandom;
    use phased::step::TextPiece;

    #[test]
    fn a_derived_text_encodes_every_reserved_byte() {
        let pieces = [TextPiece::Plain("x://u:".to_owned()), TextPiece::Generated("p".to_owned())];
        let made = text(&pieces, |_| Some("a,b=c:d/e?f#g[h]@i%j+k é\n".into()));
        assert_eq!(made, "x://u:a%2Cb%3Dc%3Ad%2Fe%3Ff%23g%5Bh%5D%40i%25j%2Bk%20%C3%A9%0A");
    }

    #[test]
    fn a_generated_text_uses_the_password_made_with_it() {
        let random = SeededRandom::new(3);
        let wanted = [
            Generate::Password { key: "password".to_owned(), length: 8 },
            Generate::Text {
                key: "uri".to_owned(),
                pieces: vec![TextPiece::Generated("password".to_owned())],
            },
        ];
        let made = generate(&wanted, &random);
        assert_eq!(made[0].1.len(), 24, "never shorter than the lower bound");
        assert_eq!(made[0].1, made[1].1);
    }
}
