//! Delete: preconditions, grace, finalizers and what they leave behind.

use serde_json::{Value, json};

use super::{convert, definition, metadata};
use crate::clock;
use crate::cluster::{Actor, Core, DeleteOptions, Operation, Propagation};
use crate::kind::Kind;
use crate::status::Failure;
use crate::store::Key;

/// Finalizer under which the garbage collector orphans dependents.
const ORPHAN: &str = "orphan";
/// Finalizer under which the garbage collector deletes dependents first.
const FOREGROUND: &str = "foregroundDeletion";

/// Namespaces that admission keeps.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Kinds whose finished deletion answers the object instead of a Status.
const ANSWERS_OBJECT: [&str; 7] = [
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourcequotas",
    "serviceaccounts",
    "services",
];

/// How a deletion goes on.
enum Course {
    /// The object goes now.
    Now,
    /// It was being deleted already and nothing gets shorter.
    Pending,
    /// It stays, marked, for so many seconds or until its finalizers are gone.
    Marked(i64),
}

impl Core {
    /// Deletes an object, or starts to; answers the marked object, or a Status when it is gone.
    ///
    /// # Errors
    /// Whatever the API server would answer: 404 or 409.
    pub fn delete(
        &mut self,
        by: &Actor,
        kind: &Kind,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Value, Failure> {
        let mut object = self.live(kind, key)?;
        check_preconditions(kind, &object, options)?;
        let review = self.review_of(by, Operation::Delete, key, None, options.dry_run);
        self.review(&review, kind, &mut object.clone())?;
        if kind.is("", "Namespace") {
            if IMMORTAL.contains(&key.name.as_str()) {
                return Err(Failure::forbidden(
                    kind,
                    &key.name,
                    "this namespace may not be deleted",
                ));
            }
            return Ok(self.delete_namespace(kind, key, object, options));
        }
        let before = object.clone();
        let course = course(kind, &object, options);
        if let Course::Pending = course {
            return Ok(object);
        }
        let names = garbage_finalizers(&object, options.propagation);
        metadata::set_finalizers(&mut object, &names);
        let grace = match course {
            Course::Marked(grace) => grace,
            Course::Now | Course::Pending => 0,
        };
        if definition::is_definition(kind) && !metadata::deleting(&object) {
            definition::mark_deleting(&mut object, self.now());
        } else if kind.is("", "Pod") || !names.is_empty() {
            self.mark(&mut object, grace);
        }
        if names.is_empty() && grace == 0 {
            if object != before && !options.dry_run {
                // A pod is seen with no time left before it is seen to be gone.
                object = self.keep(kind, key.clone(), object);
            }
            return Ok(self.end(kind, key, &object, options.dry_run));
        }
        if options.dry_run || object == before {
            return Ok(object);
        }
        let marked = self.keep(kind, key.clone(), object);
        self.sweep_definition(by, kind, &marked);
        Ok(marked)
    }

    fn mark(&self, object: &mut Value, grace: i64) {
        if !metadata::deleting(object) {
            let generation = object["metadata"]["generation"].clone();
            metadata::mark_deleting(object, self.now(), grace);
            // Definitions are marked by a path of their own, which leaves the generation alone.
            if object["kind"] == "CustomResourceDefinition" {
                object["metadata"]["generation"] = generation;
            }
            return;
        }
        let old = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        let at = metadata::text(object, "deletionTimestamp").parse::<jiff::Timestamp>();
        if let Ok(at) = at
            && grace < old
        {
            let sooner = jiff::SignedDuration::from_secs(grace - old);
            let at = at.saturating_add(sooner).unwrap_or(at);
            object["metadata"]["deletionTimestamp"] = json!(clock::seconds(at));
            object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        }
    }

    fn end(&mut self, kind: &Kind, key: &Key, object: &Value, dry_run: bool) -> Value {
        if !dry_run {
            self.vanish(kind, key);
        }
        if !kind.custom && ANSWERS_OBJECT.contains(&kind.plural.as_str()) {
            let mut object = object.clone();
            object["metadata"]["resourceVersion"] = json!(self.store.version().to_string());
            return object;
        }
        gone(kind, object)
    }

    /// A namespace is marked and keeps its own finalizer until its content is gone.
    fn delete_namespace(
        &mut self,
        kind: &Kind,
        key: &Key,
        mut object: Value,
        options: &DeleteOptions,
    ) -> Value {
        if metadata::deleting(&object) {
            let held = object["spec"]["finalizers"].as_array().is_some_and(|l| !l.is_empty());
            if held || !metadata::finalizers(&object).is_empty() {
                return object;
            }
            return self.end(kind, key, &object, options.dry_run);
        }
        object["metadata"]["deletionTimestamp"] = json!(clock::seconds(self.now()));
        object["status"]["phase"] = json!("Terminating");
        if options.dry_run {
            return object;
        }
        self.keep(kind, key.clone(), object)
    }

    /// Deletes every object of a kind that `wanted` picks; answers them as they were.
    ///
    /// # Errors
    /// The first failure that is not "already gone".
    pub fn delete_collection(
        &mut self,
        by: &Actor,
        kind: &Kind,
        namespace: Option<&str>,
        wanted: &dyn Fn(&Value) -> bool,
        options: &DeleteOptions,
    ) -> Result<Vec<Value>, Failure> {
        let chosen: Vec<(Key, Value)> = self
            .store
            .list(kind.storage_group(), &kind.plural, namespace)
            .filter(|(_, object)| wanted(object))
            .map(|(key, object)| (key.clone(), convert::shown(kind, object)))
            .collect();
        let mut deleted = Vec::new();
        for (key, object) in chosen {
            match self.delete(by, kind, &key, options) {
                Ok(_) => deleted.push(object),
                Err(failure) if failure.reason == "NotFound" => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(deleted)
    }
}

/// The Status that answers a finished deletion.
fn gone(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({
        "name": metadata::text(object, "name"),
        "kind": kind.plural,
        "uid": metadata::text(object, "uid"),
    });
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details,
    })
}

fn check_preconditions(
    kind: &Kind,
    object: &Value,
    options: &DeleteOptions,
) -> Result<(), Failure> {
    let name = metadata::text(object, "name");
    let refuse = |text: String| {
        let mut shown = kind.clone();
        // The real server names the kind, not the plural, in exactly this answer.
        shown.plural.clone_from(&kind.kind);
        Err(Failure::conflict_on(&shown, name, &text))
    };
    if let Some(wanted) = &options.uid {
        let found = metadata::text(object, "uid");
        if wanted != found {
            return refuse(format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({found}). The object might have been deleted and then recreated"
            ));
        }
    }
    if let Some(wanted) = &options.resource_version {
        let found = metadata::text(object, "resourceVersion");
        if wanted != found {
            return refuse(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). The object might have been modified"
            ));
        }
    }
    Ok(())
}

fn course(kind: &Kind, object: &Value, options: &DeleteOptions) -> Course {
    if metadata::deleting(object) {
        let old = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
        return match (old, options.grace_period) {
            (None, _) => Course::Now,
            (Some(old), Some(new)) if new < old => Course::Marked(new.max(0)),
            _ => Course::Pending,
        };
    }
    if !kind.is("", "Pod") {
        return Course::Now;
    }
    let spec = &object["spec"];
    let wanted = options
        .grace_period
        .or_else(|| spec["terminationGracePeriodSeconds"].as_i64())
        .unwrap_or(30);
    let ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let unplaced = spec["nodeName"].as_str().is_none_or(str::is_empty);
    let grace = match wanted {
        _ if ended || unplaced => 0,
        negative if negative < 0 => 1,
        seconds => seconds,
    };
    Course::Marked(grace)
}

/// The finalizers that make the garbage collector do what the request asked for.
fn garbage_finalizers(object: &Value, propagation: Option<Propagation>) -> Vec<String> {
    let mut names = metadata::finalizers(object);
    let Some(propagation) = propagation else { return names };
    names.retain(|name| name != ORPHAN && name != FOREGROUND);
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => names.push(FOREGROUND.to_owned()),
        Propagation::Orphan => names.push(ORPHAN.to_owned()),
    }
    names
}
