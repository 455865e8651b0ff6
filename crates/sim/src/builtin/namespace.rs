//! The namespace controller: empties a namespace that is being deleted, then lets it go.
//!
//! Must not touch namespaces that are active.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::door::{Door, NAMESPACES};
use super::{Controller, Model, field};
use crate::{Core, DeleteOptions, Key, Options, Sub};

/// The namespace controller; it holds no state of its own.
#[derive(Default)]
pub(super) struct Namespaces;

impl Controller for Namespaces {
    fn watches(&self) -> &'static [&'static str] {
        &["*"]
    }

    fn sync(&mut self, core: &mut Core, _: &mut Model) -> Option<Timestamp> {
        let mut door = Door::controller(core, "namespace-controller", "namespace-controller");
        for namespace in door.list(NAMESPACES, None) {
            if field::deleting(&namespace) {
                empty(&mut door, &namespace);
            }
        }
        None
    }
}

fn empty(door: &mut Door, namespace: &Value) {
    let name = field::name(namespace).to_owned();
    let content = |door: &Door| -> Vec<(Key, Value)> {
        let all = door.core.store.all();
        all.filter(|(key, _)| key.namespace == name)
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect()
    };
    for (key, object) in content(door) {
        if field::deleting(&object) {
            continue;
        }
        let Some(kind) = door.core.kinds.get(&key.group, &key.plural) else { continue };
        let options = DeleteOptions {
            propagation: Some(crate::Propagation::Background),
            ..DeleteOptions::default()
        };
        let actor = door.actor();
        let _ = door.core.delete(&actor, &kind, &key, &options);
    }
    let left = content(door);
    if left.is_empty() {
        finalize(door, namespace);
    } else {
        report(door, namespace, &left);
    }
}

fn finalize(door: &mut Door, namespace: &Value) {
    let mut last = namespace.clone();
    let mut held = field::list(namespace, "/spec/finalizers").to_vec();
    held.retain(|one| one != "kubernetes");
    last["spec"]["finalizers"] = json!(held);
    let Ok(kind) = door.kind(NAMESPACES) else { return };
    let key = super::door::key(NAMESPACES, "", field::name(namespace));
    let actor = door.actor();
    let _ = door.core.update(&actor, &kind, &key, last, Some(Sub::Finalize), &Options::default());
}

/// Says in the namespace's conditions what is still there and which finalizers hold it.
fn report(door: &mut Door, namespace: &Value, left: &[(Key, Value)]) {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    let mut finalizers: Vec<(String, usize)> = Vec::new();
    let count = |list: &mut Vec<(String, usize)>, name: String| match list
        .iter_mut()
        .find(|one| one.0 == name)
    {
        Some(one) => one.1 += 1,
        None => list.push((name, 1)),
    };
    for (key, object) in left {
        let resource = format!("{}.{}", key.plural, key.group);
        // The real message has the dot of the core group's empty name too.
        count(&mut kinds, resource);
        for finalizer in field::list(object, "/metadata/finalizers") {
            count(&mut finalizers, finalizer.as_str().unwrap_or("").to_owned());
        }
    }
    let list = |list: &[(String, usize)], what: &str| {
        let parts = list.iter().map(|(name, count)| format!("{name} {what} {count} resource"));
        parts.collect::<Vec<_>>().join(", ")
    };
    let remaining = format!("Some resources are remaining: {} instances", list(&kinds, "has"));
    let blocking = format!(
        "Some content in the namespace has finalizers remaining: {} instances",
        list(&finalizers, "in")
    );
    let conditions = conditions(namespace, &remaining, &blocking, finalizers.is_empty());
    let mut wanted = namespace.clone();
    let now = field::stamp(door.now());
    let conditions: Vec<Value> = conditions
        .into_iter()
        .map(|mut one| {
            if one.get("lastTransitionTime").is_none_or(Value::is_null) {
                one["lastTransitionTime"] = json!(now);
            }
            one
        })
        .collect();
    wanted["status"]["conditions"] = json!(conditions);
    if wanted != *namespace {
        let _ = door.update_status(NAMESPACES, wanted);
    }
}

/// The five conditions of a namespace that is going; `free` says that no finalizer holds it.
fn conditions(namespace: &Value, remaining: &str, blocking: &str, free: bool) -> [Value; 5] {
    [
        condition(
            namespace,
            "NamespaceDeletionDiscoveryFailure",
            "ResourcesDiscovered",
            "All resources successfully discovered",
            false,
        ),
        condition(
            namespace,
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
            false,
        ),
        condition(
            namespace,
            "NamespaceDeletionContentFailure",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
            false,
        ),
        condition(namespace, "NamespaceContentRemaining", "SomeResourcesRemain", remaining, true),
        condition(
            namespace,
            "NamespaceFinalizersRemaining",
            if free { "ContentHasNoFinalizers" } else { "SomeFinalizersRemain" },
            if free { "All content-preserving finalizers finished" } else { blocking },
            !free,
        ),
    ]
}

fn condition(namespace: &Value, kind: &str, reason: &str, message: &str, holds: bool) -> Value {
    let status = if holds { "True" } else { "False" };
    let since = field::condition(namespace, kind)
        .filter(|one| one["status"] == status)
        .map(|one| one["lastTransitionTime"].clone());
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    })
}
