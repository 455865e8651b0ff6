//! Random histories of writes, replayed against what kube-apiserver 1.36.3 answered.
//!
//! `recorded.json` holds sequences of applies, creates, patches and updates by three managers with
//! the object after each, or the conflicts. Times are compared by presence only.

use serde_json::{Value, json};

use super::*;
use crate::admit;
use crate::kind::{Kind, Kinds};
use crate::patch;
use crate::schema::crd::{CompiledVersion, compile};

/// One kind under test, with the steps around the pure functions that the verbs do.
struct Subject {
    kind: std::sync::Arc<Kind>,
    compiled: Option<CompiledVersion>,
    schema: std::sync::Arc<Schema>,
}

fn subject(recording: &Value, name: &str) -> Subject {
    let kinds = Kinds::default();
    let (version, plain) =
        if name == "Deployment" { ("apps/v1", name) } else { ("v1", "ConfigMap") };
    let kind = kinds.by_kind(version, plain).expect("a kind of the table");
    if name != "Thing" {
        let schema = kind.schema.clone();
        return Subject { kind, compiled: None, schema };
    }
    let compiled = compile(&recording["crd"]).expect("structural").remove(0);
    let mut custom = (*kind).clone();
    custom.custom = true;
    let schema = compiled.schema.clone();
    Subject { kind: std::sync::Arc::new(custom), compiled: Some(compiled), schema }
}

impl Subject {
    fn complete(&self, object: &mut Value, live: Option<&Value>) {
        let status = live.and_then(|live| live.get("status")).cloned();
        if let Some(map) = object.as_object_mut() {
            map.remove("status");
            map.extend(status.map(|status| ("status".to_owned(), status)));
        }
        match &self.compiled {
            Some(compiled) => {
                compiled.prune(object);
                compiled.default(object);
            }
            None => {
                admit::default(&self.kind, object);
                admit::normalize(&self.kind, object);
            }
        }
    }

    fn writer(&self, step: &Value, time: usize) -> Writer {
        let status = step["op"] == "status";
        Writer {
            manager: step["manager"].as_str().unwrap_or_default().to_owned(),
            force: step["force"] == true,
            subresource: status.then(|| "status".to_owned()),
            api_version: match self.kind.kind.as_str() {
                "ConfigMap" if self.compiled.is_some() => "x.example.com/v1".to_owned(),
                "ConfigMap" => "v1".to_owned(),
                _ => "apps/v1".to_owned(),
            },
            time: format!("2026-01-01T00:00:{time:02}Z"),
        }
    }

    fn step(
        &self,
        live: Option<&Value>,
        step: &Value,
        time: usize,
    ) -> Result<Value, Vec<Conflict>> {
        let (writer, sent) = (self.writer(step, time), &step["sent"]);
        let mut object = match step["op"].as_str().unwrap_or_default() {
            "apply" => {
                let mut object = server_side(&self.schema, live, sent, &writer)?;
                self.complete(&mut object, live);
                return Ok(object);
            }
            "status" => {
                let applied = server_side(&self.schema, live, sent, &writer)?;
                let mut object = live.cloned().unwrap_or_default();
                object["status"] = applied["status"].clone();
                object["metadata"]["managedFields"] = applied["metadata"]["managedFields"].clone();
                let confined = object.clone();
                self.complete(&mut object, Some(&confined));
                return Ok(object);
            }
            "merge" => patch::merge(live.unwrap_or(&Value::Null), sent),
            _ => sent.clone(),
        };
        self.complete(&mut object, live);
        if step["op"] == "put" && live.is_some() {
            object["metadata"]["managedFields"] = Value::Null;
        }
        track(&self.schema, live, &mut object, &writer);
        Ok(object)
    }
}

/// The object with owners in a fixed order and times masked.
fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["namespace", "name"] {
            metadata.remove(field);
        }
        metadata.retain(|_, value| !value.is_null());
    }
    if let Some(entries) = object["metadata"]["managedFields"].as_array_mut() {
        for entry in entries.iter_mut() {
            entry["time"] = json!(entry["time"].is_string());
        }
        entries.sort_by_key(|entry| {
            ["manager", "operation", "subresource"].map(|field| entry[field].to_string())
        });
    }
    object
}

fn causes(conflicts: &[Conflict]) -> Value {
    let mut lines: Vec<String> = describe(conflicts)
        .1
        .iter()
        .map(|cause| format!("{} {}", cause.field, cause.message))
        .collect();
    lines.sort();
    json!(lines)
}

#[test]
fn histories_end_as_recorded() {
    let recording: Value =
        serde_json::from_str(include_str!("recorded.json")).expect("a recording");
    let mut differences = Vec::new();
    let mut steps = 0;
    for (number, sequence) in recording["sequences"].as_array().into_iter().flatten().enumerate() {
        let subject = subject(&recording, sequence["kind"].as_str().unwrap_or_default());
        let mut live: Option<Value> = None;
        for (index, step) in sequence["steps"].as_array().into_iter().flatten().enumerate() {
            steps += 1;
            let place =
                format!("sequence {number} ({}), step {index}: {}", sequence["kind"], step["op"]);
            match (subject.step(live.as_ref(), step, index), step.get("object")) {
                (Ok(ours), Some(theirs)) => {
                    let (left, right) = (comparable(&ours), comparable(theirs));
                    if left != right {
                        differences.push(format!("{place}\n  sent   {}\n  live   {live:?}\n  ours   {left}\n  theirs {right}", step["sent"]));
                        break;
                    }
                    live = Some(ours);
                }
                (Err(conflicts), None) => {
                    if causes(&conflicts) != step["causes"] {
                        differences.push(format!(
                            "{place}\n  ours   {}\n  theirs {}",
                            causes(&conflicts),
                            step["causes"]
                        ));
                    }
                }
                (Ok(_), None) => {
                    differences.push(format!(
                        "{place}: no conflict, they have {}\n sent {}",
                        step["causes"], step["sent"]
                    ));
                }
                (Err(conflicts), Some(_)) => {
                    differences.push(format!("{place}: conflicts {}", causes(&conflicts)));
                    break;
                }
            }
        }
    }
    assert!(steps > 100, "the recording has histories");
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}
