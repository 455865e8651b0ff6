//! The garbage collector: background, foreground and orphaning deletion, absent owners by uid.
//!
//! Must not delete anything that has no owner references.

mod graph;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::door::Door;
use super::{Controller, Model, field};
use crate::{Core, DeleteOptions, Key, Propagation};
use graph::{Case, Graph};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// The garbage collector.
#[derive(Default)]
pub(super) struct Garbage {
    graph: Graph,
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
        for case in self.graph.due(&door.core.store) {
            let finished = finish_owner(&mut door, &case);
            let collected = collect(&mut door, &case);
            if !(finished && collected) {
                self.graph.again(case.key);
            }
        }
        None
    }
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
