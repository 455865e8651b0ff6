//! Update: replacing an object or one of its subresources.

use serde_json::Value;

use super::{Tracking, metadata, scale};
use crate::admit;
use crate::cluster::{Actor, Core, Operation, Options, Sub};
use crate::kind::Kind;
use crate::status::{Cause, Failure};
use crate::store::Key;

/// One change on its way into the store.
pub(super) struct Draft<'a> {
    pub(super) by: &'a Actor,
    pub(super) kind: &'a Kind,
    pub(super) key: &'a Key,
    pub(super) sub: Option<Sub>,
    pub(super) tracking: Tracking,
    pub(super) options: &'a Options,
}

impl Core {
    /// Replaces an object or one of its subresources; answers it as stored.
    ///
    /// # Errors
    /// Whatever the API server would answer: 400, 404, 409 or 422.
    pub fn update(
        &mut self,
        by: &Actor,
        kind: &Kind,
        key: &Key,
        mut object: Value,
        sub: Option<Sub>,
        options: &Options,
    ) -> Result<Value, Failure> {
        let draft = Draft { by, kind, key, sub, tracking: Tracking::Update, options };
        if sub == Some(Sub::Scale) {
            return self.update_scale(&draft, &object);
        }
        self.decode(kind, &mut object, options)?;
        metadata::place(kind, &key.namespace, Some(&key.name), &mut object)?;
        let live = self.live(kind, key)?;
        check_uid(kind, &object, &live)?;
        if metadata::text(&object, "resourceVersion").is_empty() && !kind.unconditional_update {
            let cause = Cause::new(
                "FieldValueInvalid",
                "metadata.resourceVersion",
                "Invalid value: 0: must be specified for an update",
            );
            // The storage layer names the resource where validation names the kind.
            let mut shown = kind.clone();
            shown.kind.clone_from(&kind.plural);
            return Err(Failure::invalid(&shown, &key.name, vec![cause]));
        }
        self.replace(&draft, live, object)
    }

    fn update_scale(&mut self, draft: &Draft<'_>, wanted: &Value) -> Result<Value, Failure> {
        let live = self.live(draft.kind, draft.key)?;
        let object = scale::scaled(draft.kind, &live, wanted)?;
        let stored = self.replace(draft, live, object)?;
        scale::of(draft.kind, &stored)
    }

    /// The part of update that patches share: `object` is what the client wants `live` to become.
    pub(super) fn replace(
        &mut self,
        draft: &Draft<'_>,
        live: Value,
        mut object: Value,
    ) -> Result<Value, Failure> {
        let Draft { by, kind, key, sub, tracking, options } = *draft;
        let version = metadata::text(&object, "resourceVersion");
        if !version.is_empty() && version != metadata::text(&live, "resourceVersion") {
            return Err(Failure::modified(kind, &key.name));
        }
        metadata::restore(&mut object, &live);
        let mut object = reach(kind, sub, &live, object);
        self.complete(kind, &mut object);
        if changes_generation(kind, &live, &object) {
            metadata::next_generation(&mut object);
        }
        if tracking == Tracking::Update {
            self.track(by, kind, sub, Some(&live), &mut object);
        }
        admit::plugins(kind, &mut object);
        let review = self.review_of(by, Operation::Update, key, sub, options.dry_run);
        self.review(&review, kind, &mut object)?;
        // The real server checks the metadata twice on its way, and says so twice.
        let mut causes = metadata::update_causes(&object, &live);
        causes.extend(causes.clone());
        self.validate(kind, &object, Some(&live), causes)?;
        object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        if same(&live, &object) {
            return Ok(live);
        }
        if options.dry_run {
            return Ok(object);
        }
        self.settle(kind, key, &live, object)
    }

    /// Stores the change, or finishes a deletion that only waited for it.
    fn settle(
        &mut self,
        kind: &Kind,
        key: &Key,
        live: &Value,
        object: Value,
    ) -> Result<Value, Failure> {
        let graceful = live["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) != 0;
        let held = kind.is("", "Namespace")
            && object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        let last = metadata::deleting(live) && metadata::finalizers(&object).is_empty();
        if last && !graceful && !held {
            self.vanish(kind, key);
            return Ok(object);
        }
        let changed = self.keep(kind, key.clone(), object);
        self.accept_definition(kind, &changed);
        Ok(changed)
    }
}

/// A PUT that names a uid means that incarnation only.
fn check_uid(kind: &Kind, object: &Value, live: &Value) -> Result<(), Failure> {
    let (wanted, found) = (metadata::text(object, "uid"), metadata::text(live, "uid"));
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let (namespace, name) = (metadata::text(live, "namespace"), metadata::text(live, "name"));
    let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    let folder = match kind.group.as_str() {
        "" => kind.plural.clone(),
        group => format!("{group}/{}", kind.plural),
    };
    Err(Failure::conflict_on(
        kind,
        name,
        &format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{folder}/{place}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        ),
    ))
}

/// Kinds whose status strategy lets labels and annotations through.
const OPEN_STATUS: [&str; 3] = ["pods", "nodes", "namespaces"];

/// Confines a write to the part of the object that its endpoint may change.
fn reach(kind: &Kind, sub: Option<Sub>, live: &Value, mut object: Value) -> Value {
    match sub {
        None | Some(Sub::Scale) => {
            if kind.status {
                copy(&mut object, live, "status");
            }
            if kind.is("", "Namespace") {
                copy(&mut object, live, "spec");
            }
            object
        }
        Some(Sub::Status) => {
            let open = !kind.custom && OPEN_STATUS.contains(&kind.plural.as_str());
            let mut confined = live.clone();
            copy(&mut confined, &object, "status");
            let metadata_fields: &[&str] =
                if open { &["managedFields", "labels", "annotations"] } else { &["managedFields"] };
            for field in metadata_fields {
                copy_metadata(&mut confined, &object, field);
            }
            confined
        }
        Some(Sub::Finalize) => {
            let mut confined = live.clone();
            confined["spec"]["finalizers"] = object["spec"]["finalizers"].clone();
            copy_metadata(&mut confined, &object, "managedFields");
            confined
        }
        Some(Sub::Resize) => {
            let mut confined = live.clone();
            copy(&mut confined, &object, "spec");
            copy_metadata(&mut confined, &object, "managedFields");
            confined
        }
    }
}

fn copy(to: &mut Value, from: &Value, field: &str) {
    match from.get(field) {
        Some(value) => to[field] = value.clone(),
        None => {
            if let Some(map) = to.as_object_mut() {
                map.remove(field);
            }
        }
    }
}

fn copy_metadata(to: &mut Value, from: &Value, field: &str) {
    match from["metadata"].get(field) {
        Some(value) => to["metadata"][field] = value.clone(),
        None => metadata::remove(to, field),
    }
}

/// Built-in kinds count changes of the spec; custom kinds everything outside metadata and status.
fn changes_generation(kind: &Kind, live: &Value, object: &Value) -> bool {
    if !kind.generation {
        return false;
    }
    if !kind.custom {
        return match kind.plural.as_str() {
            "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => {
                live.get("webhooks") != object.get("webhooks")
            }
            "endpointslices" => {
                live.get("endpoints") != object.get("endpoints")
                    || live.get("ports") != object.get("ports")
            }
            _ => live.get("spec") != object.get("spec"),
        };
    }
    let rest = |value: &Value| {
        let mut map = value.as_object().cloned().unwrap_or_default();
        map.remove("metadata");
        map.remove("apiVersion");
        if kind.status {
            map.remove("status");
        }
        map
    };
    rest(live) != rest(object)
}

/// Whether a write would change nothing: times in managedFields do not count.
fn same(live: &Value, object: &Value) -> bool {
    timeless(live) == timeless(object)
}

fn timeless(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(entries) = object["metadata"]["managedFields"].as_array_mut() {
        for entry in entries {
            if let Some(map) = entry.as_object_mut() {
                map.remove("time");
            }
        }
    }
    object
}
