//! The garbage collector: background, foreground and orphaning deletion, absent owners by uid.
//!
//! Must not delete anything that has no owner references.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::changes::Changes;
use super::door::Door;
use super::{Controller, Model, field};
use crate::{Core, DeleteOptions, Key, Propagation, Store};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// The garbage collector, with its graph of who owns whom, kept up by what changes.
#[derive(Default)]
pub(super) struct Garbage {
    changes: Changes,
    /// Where each uid is.
    keys: BTreeMap<String, Key>,
    /// Dependents by the uid of their owner.
    dependents: BTreeMap<String, BTreeSet<Key>>,
    /// What may have to be done something about.
    due: BTreeSet<Key>,
}

/// An object that is looked at, with what its fate depends on, as all of it was when the look began.
struct Case {
    key: Key,
    object: Arc<Value>,
    /// Owners that exist, with their namespaces, by uid.
    owners: BTreeMap<String, (String, Arc<Value>)>,
    dependents: Vec<(Key, Arc<Value>)>,
}

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
        self.follow(&door.core.store);
        let due = std::mem::take(&mut self.due);
        let cases: Vec<Case> =
            due.into_iter().filter_map(|key| self.case(&door.core.store, key)).collect();
        for case in cases {
            let finished = finish_owner(&mut door, &case);
            let collected = collect(&mut door, &case);
            if !(finished && collected) {
                self.due.insert(case.key);
            }
        }
        None
    }
}

impl Garbage {
    fn follow(&mut self, store: &Store) {
        if let Some(changes) = self.changes.next(store) {
            for change in changes {
                self.note(&change.key, change.before.as_deref(), change.after.as_deref());
            }
            return;
        }
        self.keys.clear();
        self.dependents.clear();
        for (key, object) in store.all() {
            self.note(key, None, Some(object));
        }
    }

    /// Takes a change into the graph: the object, its dependents and its owners are looked at again.
    fn note(&mut self, key: &Key, before: Option<&Value>, after: Option<&Value>) {
        self.due.insert(key.clone());
        for object in [before, after].into_iter().flatten() {
            let dependents = self.dependents.get(field::uid(object));
            self.due.extend(dependents.into_iter().flatten().cloned());
            let owners = owner_uids(object).filter_map(|uid| self.keys.get(uid));
            self.due.extend(owners.cloned());
        }
        if let Some(before) = before {
            self.keys.remove(field::uid(before));
            for uid in owner_uids(before) {
                let left = self.dependents.get_mut(uid).is_some_and(|keys| {
                    keys.remove(key);
                    !keys.is_empty()
                });
                if !left {
                    self.dependents.remove(uid);
                }
            }
        }
        if let Some(after) = after {
            self.keys.insert(field::uid(after).to_owned(), key.clone());
            for uid in owner_uids(after) {
                self.dependents.entry(uid.to_owned()).or_default().insert(key.clone());
            }
        }
    }

    fn case(&self, store: &Store, key: Key) -> Option<Case> {
        let object = store.share(&key).filter(|object| concerned(object))?;
        let owners = owner_uids(&object).filter_map(|uid| {
            let key = self.keys.get(uid)?;
            Some((uid.to_owned(), (key.namespace.clone(), store.share(key)?)))
        });
        let owners = owners.collect();
        let dependents = self.dependents.get(field::uid(&object)).into_iter().flatten();
        let dependents =
            dependents.filter_map(|key| Some((key.clone(), store.share(key)?))).collect();
        Some(Case { key, object, owners, dependents })
    }
}

fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    let references = field::list(object, "/metadata/ownerReferences").iter();
    references.map(|reference| field::text(reference, "/uid"))
}

fn concerned(object: &Value) -> bool {
    let held = field::deleting(object)
        && (field::has_finalizer(object, FOREGROUND) || field::has_finalizer(object, ORPHAN));
    held || !field::list(object, "/metadata/ownerReferences").is_empty()
}

fn owned_by<'a>(object: &'a Value, uid: &str) -> Option<&'a Value> {
    field::list(object, "/metadata/ownerReferences").iter().find(|one| one["uid"] == uid)
}

/// An owner that is being deleted: lets its dependents go, or waits for those that block it. False when
/// a write failed and must be tried again.
fn finish_owner(door: &mut Door, case: &Case) -> bool {
    let owner = &case.object;
    if !field::deleting(owner) {
        return true;
    }
    let uid = field::uid(owner);
    if field::has_finalizer(owner, ORPHAN) {
        let mut released = true;
        for (key, _) in &case.dependents {
            released &= release(door, key, &BTreeSet::from([uid.to_owned()]));
        }
        return released && drop_finalizer(door, &case.key, ORPHAN);
    }
    if field::has_finalizer(owner, FOREGROUND) {
        let mut alive = case.dependents.iter().filter(|(key, _)| {
            let present = door.core.store.get(key);
            present
                .and_then(|one| owned_by(one, uid))
                .is_some_and(|reference| field::flag(reference, "/blockOwnerDeletion"))
        });
        return alive.next().is_some() || drop_finalizer(door, &case.key, FOREGROUND);
    }
    true
}

/// Deletes what nobody owns any more. False when a write failed and must be tried again.
fn collect(door: &mut Door, case: &Case) -> bool {
    let object = &case.object;
    if field::deleting(object) {
        return true;
    }
    let owners = look(case);
    if !owners.any {
        return true;
    }
    if owners.solid {
        let superfluous = !owners.dangling.is_empty() || owners.waiting;
        return !superfluous || release(door, &case.key, &owners.dangling);
    }
    let propagation = match () {
        () if owners.waiting => Propagation::Foreground,
        () if field::has_finalizer(object, ORPHAN) => Propagation::Orphan,
        () => Propagation::Background,
    };
    let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
    delete(door, &case.key, object, options)
}

fn look(case: &Case) -> Owners {
    let mut owners = Owners::default();
    for reference in field::list(&case.object, "/metadata/ownerReferences") {
        owners.any = true;
        let uid = field::text(reference, "/uid");
        // An owner must live in the same namespace or be cluster-wide, and be what it says.
        let owner = case.owners.get(uid).filter(|(namespace, owner)| {
            let near = namespace.is_empty() || *namespace == case.key.namespace;
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

fn delete(door: &mut Door, key: &Key, object: &Value, mut options: DeleteOptions) -> bool {
    let Some(kind) = kind_of(door, key) else { return true };
    options.uid = Some(field::uid(object).to_owned());
    let actor = door.actor();
    door.core.delete(&actor, &kind, key, &options).is_ok()
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

/// Takes a finalizer off; true when it is off.
fn drop_finalizer(door: &mut Door, key: &Key, finalizer: &str) -> bool {
    let Some(mut object) = door.core.store.get(key).cloned() else { return true };
    !field::set_finalizer(&mut object, finalizer, false) || write(door, key, object)
}

fn write(door: &mut Door, key: &Key, object: Value) -> bool {
    let Some(kind) = kind_of(door, key) else { return true };
    let actor = door.actor();
    door.core.update(&actor, &kind, key, object, None, &crate::Options::default()).is_ok()
}
