//! The garbage collector: background, foreground and orphaning deletion, absent owners by uid.
//!
//! Must not delete anything that has no owner references.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::door::Door;
use super::{Controller, Model, field};
use crate::{Core, DeleteOptions, Key, Propagation};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// The garbage collector; it holds no state of its own.
#[derive(Default)]
pub(super) struct Garbage;

/// Every object's namespace and content, by uid.
type Uids = BTreeMap<String, (String, Arc<Value>)>;

/// What is known about the owners of one object.
#[derive(Default)]
struct Owners {
    /// At least one owner lives and is not waiting for its dependents.
    solid: bool,
    /// An owner waits in the foreground for this object.
    waiting: bool,
    /// Uids that point nowhere.
    dangling: BTreeSet<String>,
    any: bool,
}

impl Controller for Garbage {
    fn watches(&self) -> &'static [&'static str] {
        &["*"]
    }

    fn sync(&mut self, core: &mut Core, _: &mut Model) -> Option<Timestamp> {
        let mut door =
            Door::controller(core, "generic-garbage-collector", "garbage-collector-controller");
        let store = &door.core.store;
        let objects: Vec<(Key, Arc<Value>)> = store
            .all()
            .filter(|(_, object)| concerned(object))
            .filter_map(|(key, _)| Some((key.clone(), store.share(key)?)))
            .collect();
        if objects.is_empty() {
            return None;
        }
        let uids: Uids = store
            .all()
            .filter_map(|(key, object)| {
                let uid = field::uid(object).to_owned();
                Some((uid, (key.namespace.clone(), store.share(key)?)))
            })
            .collect();
        for (key, object) in &objects {
            finish_owner(&mut door, key, object, &objects);
            collect(&mut door, key, object, &uids);
        }
        None
    }
}

fn concerned(object: &Value) -> bool {
    let held = field::deleting(object)
        && (field::has_finalizer(object, FOREGROUND) || field::has_finalizer(object, ORPHAN));
    held || !field::list(object, "/metadata/ownerReferences").is_empty()
}

fn owned_by<'a>(object: &'a Value, uid: &str) -> Option<&'a Value> {
    field::list(object, "/metadata/ownerReferences").iter().find(|one| one["uid"] == uid)
}

/// An owner that is being deleted: lets its dependents go, or waits for those that block it.
fn finish_owner(door: &mut Door, key: &Key, owner: &Value, objects: &[(Key, Arc<Value>)]) {
    if !field::deleting(owner) {
        return;
    }
    let uid = field::uid(owner);
    let dependents = objects.iter().filter(|(_, one)| owned_by(one, uid).is_some());
    if field::has_finalizer(owner, ORPHAN) {
        let mut released = true;
        for (key, _) in dependents {
            released &= release(door, key, &BTreeSet::from([uid.to_owned()]));
        }
        if released {
            drop_finalizer(door, key, ORPHAN);
        }
    } else if field::has_finalizer(owner, FOREGROUND) {
        let mut alive = dependents.filter(|(key, _)| {
            let present = door.core.store.get(key);
            present
                .and_then(|one| owned_by(one, uid))
                .is_some_and(|reference| field::flag(reference, "/blockOwnerDeletion"))
        });
        if alive.next().is_none() {
            drop_finalizer(door, key, FOREGROUND);
        }
    }
}

fn collect(door: &mut Door, key: &Key, object: &Value, uids: &Uids) {
    if field::deleting(object) {
        return;
    }
    let owners = look(key, object, uids);
    if !owners.any {
        return;
    }
    if owners.solid {
        if !owners.dangling.is_empty() || owners.waiting {
            release(door, key, &owners.dangling);
        }
        return;
    }
    let propagation = match () {
        () if owners.waiting => Propagation::Foreground,
        () if field::has_finalizer(object, ORPHAN) => Propagation::Orphan,
        () => Propagation::Background,
    };
    let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
    delete(door, key, object, options);
}

fn look(key: &Key, object: &Value, uids: &Uids) -> Owners {
    let mut owners = Owners::default();
    for reference in field::list(object, "/metadata/ownerReferences") {
        owners.any = true;
        let uid = field::text(reference, "/uid");
        // An owner must live in the same namespace or be cluster-wide, and be what it says.
        let owner = uids.get(uid).filter(|(namespace, owner)| {
            let near = namespace.is_empty() || *namespace == key.namespace;
            near && reference["kind"] == owner["kind"] && reference["name"] == field::name(owner)
        });
        match owner {
            None => {
                owners.dangling.insert(uid.to_owned());
            }
            Some((_, owner)) => {
                let waits = field::deleting(owner) && field::has_finalizer(owner, FOREGROUND);
                owners.waiting |= waits;
                owners.solid |= !waits;
            }
        }
    }
    owners
}

fn kind_of(door: &Door, key: &Key) -> Option<std::sync::Arc<crate::Kind>> {
    door.core.kinds.get(&key.group, &key.plural)
}

fn delete(door: &mut Door, key: &Key, object: &Value, mut options: DeleteOptions) {
    let Some(kind) = kind_of(door, key) else { return };
    options.uid = Some(field::uid(object).to_owned());
    let actor = door.actor();
    let _ = door.core.delete(&actor, &kind, key, &options);
}

/// Takes owner references away; true when nothing is left to take.
fn release(door: &mut Door, key: &Key, uids: &BTreeSet<String>) -> bool {
    let Some(mut object) = door.core.store.get(key).cloned() else { return true };
    let mut owners = field::list(&object, "/metadata/ownerReferences").to_vec();
    owners.retain(|one| !uids.contains(field::text(one, "/uid")));
    if owners.len() == field::list(&object, "/metadata/ownerReferences").len() {
        return true;
    }
    match owners.is_empty() {
        true => field::remove(&mut object, "/metadata", "ownerReferences"),
        false => object["metadata"]["ownerReferences"] = Value::Array(owners),
    }
    write(door, key, object)
}

fn drop_finalizer(door: &mut Door, key: &Key, finalizer: &str) {
    let Some(mut object) = door.core.store.get(key).cloned() else { return };
    if field::set_finalizer(&mut object, finalizer, false) {
        write(door, key, object);
    }
}

fn write(door: &mut Door, key: &Key, object: Value) -> bool {
    let Some(kind) = kind_of(door, key) else { return true };
    let actor = door.actor();
    door.core.update(&actor, &kind, key, object, None, &crate::Options::default()).is_ok()
}
