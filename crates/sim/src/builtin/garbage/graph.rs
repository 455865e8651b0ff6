//! Who owns whom, kept up by what changes in the store.
//!
//! Must not write, nor decide what goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{FOREGROUND, ORPHAN};
use crate::builtin::changes::Changes;
use crate::builtin::field;
use crate::{Key, Store};

/// Owners and dependents.
#[derive(Default)]
pub(super) struct Graph {
    changes: Changes,
    /// Where each uid is.
    keys: BTreeMap<String, Key>,
    /// Dependents by the uid of their owner.
    dependents: BTreeMap<String, BTreeSet<Key>>,
    /// What may have to be done something about.
    due: BTreeSet<Key>,
}

/// An object that is looked at, with what its fate depends on, as all of it was when the look began.
pub(super) struct Case {
    pub(super) key: Key,
    pub(super) object: Arc<Value>,
    /// Owners that exist, with their namespaces, by uid.
    pub(super) owners: BTreeMap<String, (String, Arc<Value>)>,
    pub(super) dependents: Vec<(Key, Arc<Value>)>,
}

impl Graph {
    /// What may have to be done something about, since something has changed around it or was not done
    /// the last time.
    pub(super) fn due(&mut self, store: &Store) -> Vec<Case> {
        self.follow(store);
        let due = std::mem::take(&mut self.due);
        due.into_iter().filter_map(|key| self.case(store, key)).collect()
    }

    /// Looks at an object again the next time, whatever changes.
    pub(super) fn again(&mut self, key: Key) {
        self.due.insert(key);
    }

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
