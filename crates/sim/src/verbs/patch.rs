//! Patch: JSON, merge, strategic merge and server-side apply.

use serde_json::{Value, json};

use super::{Tracking, decode, metadata, scale, update::Draft};
use crate::cluster::{Actor, Core, FieldValidation, Options, Patch, Sub};
use crate::kind::Kind;
use crate::status::Failure;
use crate::store::Key;
use crate::{apply, patch};

impl Core {
    /// Patches an object or one of its subresources; answers it as stored.
    ///
    /// # Errors
    /// Whatever the API server would answer: 400, 404, 409, 415 or 422.
    pub fn patch(
        &mut self,
        by: &Actor,
        kind: &Kind,
        key: &Key,
        patch: Patch,
        sub: Option<Sub>,
        options: &Options,
    ) -> Result<Value, Failure> {
        let mut draft = Draft { by, kind, key, sub, tracking: Tracking::Update, options };
        if let Patch::Apply { object, force } = patch {
            draft.tracking = Tracking::Applied;
            return if sub == Some(Sub::Scale) {
                self.patch_scale(&draft, &Patch::Merge(object))
            } else {
                self.apply(&draft, object, force)
            };
        }
        if sub == Some(Sub::Scale) {
            return self.patch_scale(&draft, &patch);
        }
        let live = self.live(kind, key)?;
        let mut object = patched(kind, &live, &patch)?;
        let sent = object.clone();
        if !kind.custom
            && let Some(text) = misfit(kind, &patch, &object)
        {
            return Err(blame(&patch, &sent, &text));
        }
        let unknown = decode::prune(kind, &mut object);
        if options.field_validation == FieldValidation::Strict && !unknown.is_empty() {
            return Err(strict(&patch, &sent, &unknown));
        }
        self.report_unknown(kind, unknown, options)?;
        for field in ["apiVersion", "kind"] {
            object[field] = live[field].clone();
        }
        self.replace(&draft, live, object)
    }

    fn patch_scale(&mut self, draft: &Draft<'_>, patch: &Patch) -> Result<Value, Failure> {
        let live = self.live(draft.kind, draft.key)?;
        let wanted = patched(draft.kind, &scale::of(draft.kind, &live)?, patch)?;
        let object = scale::scaled(draft.kind, &live, &wanted)?;
        let draft = Draft { tracking: Tracking::Update, ..*draft };
        let stored = self.replace(&draft, live, object)?;
        scale::of(draft.kind, &stored)
    }

    fn apply(
        &mut self,
        draft: &Draft<'_>,
        mut wanted: Value,
        force: bool,
    ) -> Result<Value, Failure> {
        let Draft { by, kind, key, sub, options, .. } = *draft;
        if wanted["metadata"]["managedFields"].as_array().is_some_and(|list| !list.is_empty()) {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        self.decode_applied(kind, &mut wanted, options)?;
        // The configuration itself stays as it was sent: kubectl's annotation repeats it.
        metadata::place(kind, &key.namespace, Some(&key.name), &mut wanted.clone())?;
        let live = self.store.get(key).map(|stored| super::shown(kind, stored));
        check_absent(kind, key, sub, live.as_ref(), &wanted)?;
        confine(kind, sub, &mut wanted);
        let writer = self.writer(by, kind, sub, force);
        let mut merged = apply::server_side(&kind.schema, live.as_ref(), &wanted, &writer)
            .map_err(|conflicts| refuse(&conflicts))?;
        match live {
            Some(live) => self.replace(draft, live, merged),
            None => {
                metadata::place(kind, &key.namespace, Some(&key.name), &mut merged)?;
                metadata::remove(&mut merged, "resourceVersion");
                self.insert(by, kind, merged, Tracking::Applied, options)
            }
        }
    }

    /// Fields of an applied configuration that do not fit the schema are errors, whatever the
    /// request says about validation: they have no place in the typed object.
    fn decode_applied(
        &mut self,
        kind: &Kind,
        wanted: &mut Value,
        options: &Options,
    ) -> Result<(), Failure> {
        if wanted["apiVersion"].as_str().is_none() || wanted["kind"].as_str().is_none() {
            return Err(Failure::bad_request(
                "invalid object type: /, Kind=: the applied configuration must have apiVersion and kind",
            ));
        }
        if wanted["kind"] != kind.kind.as_str() {
            return Err(Failure::bad_request(format!(
                "invalid object type: {}, Kind={}",
                wanted["apiVersion"].as_str().unwrap_or(""),
                wanted["kind"].as_str().unwrap_or("")
            )));
        }
        apply::check(&kind.schema, wanted).map_err(|text| Failure {
            code: 500,
            reason: "",
            message: format!(
                "failed to create typed patch object ({}/{}; {}/{}, Kind={}): {text}",
                metadata::text(wanted, "namespace"),
                metadata::text(wanted, "name"),
                kind.group,
                kind.version,
                kind.kind,
            ),
            details: None,
        })?;
        self.decode(kind, wanted, options)
    }
}

/// Applying to something that is not there creates it, unless the request means a known object.
fn check_absent(
    kind: &Kind,
    key: &Key,
    sub: Option<Sub>,
    live: Option<&Value>,
    wanted: &Value,
) -> Result<(), Failure> {
    if live.is_some() {
        return Ok(());
    }
    if sub.is_some() {
        return Err(Failure::not_found(kind, &key.name));
    }
    match metadata::text(wanted, "uid") {
        "" => {}
        uid => {
            return Err(Failure::conflict_on(
                kind,
                &key.name,
                &format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                ),
            ));
        }
    }
    // A version, unlike a uid, is not held against an object that is not there.
    if metadata::text(wanted, "name").is_empty() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            key.name
        )));
    }
    Ok(())
}

/// Takes out of an applied configuration what its endpoint can't change, so that nobody owns it.
fn confine(kind: &Kind, sub: Option<Sub>, wanted: &mut Value) {
    let Some(map) = wanted.as_object_mut() else { return };
    match sub {
        Some(Sub::Status) => {
            map.retain(|field, _| {
                ["apiVersion", "kind", "metadata", "status"].contains(&field.as_str())
            });
            if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|field, _| {
                    ["name", "namespace", "uid", "resourceVersion"].contains(&field.as_str())
                });
            }
        }
        _ if kind.status => {
            map.remove("status");
        }
        _ => {}
    }
}

fn patched(kind: &Kind, live: &Value, patch: &Patch) -> Result<Value, Failure> {
    match patch {
        Patch::Json(operations) if !operations.is_array() => Err(Failure::bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        )),
        Patch::Json(operations) => patch::json(live, operations).map_err(|_| unprocessable()),
        Patch::Merge(body) | Patch::Apply { object: body, .. } => {
            if !body.is_object() {
                return Err(Failure::bad_request(
                    "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
                ));
            }
            Ok(patch::merge(live, body))
        }
        Patch::Strategic(_) if kind.custom => Err(Failure::unsupported_media(
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        Patch::Strategic(body) => {
            patch::strategic(&kind.schema, live, body).map_err(|text| Failure::new(500, "", text))
        }
    }
}

/// What is wrong with the types of a patched object, in the words of the part that reads it.
fn misfit(kind: &Kind, patch: &Patch, object: &Value) -> Option<String> {
    match patch {
        Patch::Strategic(_) => kind.schema.misfit(object),
        _ => kind.schema.decode(object).err(),
    }
}

/// Strict validation of a patch blames the patch.
fn strict(patch: &Patch, patched: &Value, unknown: &[String]) -> Failure {
    let fields: Vec<String> =
        unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    blame(patch, patched, &format!("strict decoding error: {}", fields.join(", ")))
}

/// What is wrong with the patched object is blamed on the patch, which is shown as Go prints it.
fn blame(patch: &Patch, patched: &Value, text: &str) -> Failure {
    let shown = match patch {
        Patch::Strategic(body) => go_text(body),
        _ => patched.to_string().replace('"', "\\\""),
    };
    let message = format!("Invalid value: \"{shown}\": {text}");
    let cause = crate::Cause::new("FieldValueInvalid", "patch", message.clone());
    Failure::new(422, "Invalid", format!(" \"\" is invalid: patch: {message}")).with(json!({
        "causes": [{ "reason": cause.reason, "message": cause.message, "field": cause.field }],
    }))
}

/// A JSON value as Go's `%v` prints it.
fn go_text(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", go_text(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
        Value::Array(list) => {
            format!("[{}]", list.iter().map(go_text).collect::<Vec<_>>().join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

/// The server logs why a JSON patch does not apply and tells the client only this.
fn unprocessable() -> Failure {
    Failure::new(422, "Invalid", "the server rejected our request due to an error in our request")
        .with(json!({}))
}

fn refuse(conflicts: &[apply::Conflict]) -> Failure {
    let (message, causes) = apply::describe(conflicts);
    Failure::apply_conflict(message, &causes)
}
