//! What we know of the cluster: watched objects, our own writes included, by name.
//!
//! Reads our own writes: an answer to a write goes in at once, and an older state that a watch
//! delivers later never replaces it. Must not call the server.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use phased::{KindRef, Live, ObjectId, Want};

/// The shared store.
#[derive(Clone, Default)]
pub struct Store {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    objects: BTreeMap<ObjectId, Known>,
    /// Counts the states taken in, so that a list knows what came after it began.
    taken: u64,
    /// Version at which a name was last seen to go, so that a late event cannot bring back what was
    /// before. Only the version counts: an object that merely leaves a watch's selector is told as
    /// deleted, and may come back under the same uid.
    graves: BTreeMap<ObjectId, Grave>,
    /// The names in the order of their burial, a name as often as it was buried.
    buried: VecDeque<ObjectId>,
    listed: BTreeSet<(KindRef, String)>,
}

/// Where an object was last seen.
#[derive(Default)]
struct Grave {
    version: u64,
    burials: usize,
}

/// A state, and when it was taken in.
struct Known {
    live: Arc<Live>,
    taken: u64,
}

/// How many graves are kept; the oldest go first. An event this late is older than the watch's list.
const GRAVES: usize = 4096;

impl Inner {
    fn bury(&mut self, id: &ObjectId, version: u64) {
        let grave = self.graves.entry(id.clone()).or_default();
        grave.version = version.max(grave.version);
        grave.burials += 1;
        self.buried.push_back(id.clone());
        if self.buried.len() > GRAVES
            && let Some(oldest) = self.buried.pop_front()
            && let Some(grave) = self.graves.get_mut(&oldest)
        {
            grave.burials -= 1;
            if grave.burials == 0 {
                self.graves.remove(&oldest);
            }
        }
    }
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a state of an object, unless a newer one is known. Returns whether it was new.
    pub fn put(&self, id: &ObjectId, live: Live) -> bool {
        let mut inner = self.lock();
        let version = version(&live);
        if inner.graves.get(id).is_some_and(|grave| version <= grave.version) {
            return false;
        }
        if let Some(known) = inner.objects.get(id)
            && self::version(&known.live) >= version
        {
            return false;
        }
        inner.taken += 1;
        let known = Known { live: Arc::new(live), taken: inner.taken };
        inner.objects.insert(id.clone(), known);
        true
    }

    /// Forgets one incarnation that is gone.
    pub fn remove(&self, id: &ObjectId, uid: &str, version: u64) {
        let mut inner = self.lock();
        if inner.objects.get(id).is_some_and(|known| known.live.uid() == uid) {
            inner.objects.remove(id);
        }
        inner.bury(id, version);
    }

    /// Forgets an object as it was read, which no watch tells of; a newer state that a watch brought
    /// meanwhile stays.
    pub fn forget(&self, id: &ObjectId, read: &Live) {
        let mut inner = self.lock();
        if inner.objects.get(id).is_some_and(|known| version(&known.live) <= version(read)) {
            inner.objects.remove(id);
        }
    }

    /// The mark to give to [`Store::retain`]: taken when a list begins.
    pub fn mark(&self) -> u64 {
        self.lock().taken
    }

    /// Ends a complete list of `kind` in `scope` (a namespace, or empty for all) that began at
    /// `mark`: what it did not hold, and we did not write since, is gone. Returns what went.
    pub fn retain(
        &self,
        kind: KindRef,
        scope: &str,
        held: &BTreeSet<ObjectId>,
        mark: u64,
    ) -> Vec<(ObjectId, Arc<Live>)> {
        let mut inner = self.lock();
        let gone: Vec<(ObjectId, Arc<Live>)> = inner
            .objects
            .iter()
            .filter(|(id, known)| {
                let covered = id.kind == kind && (scope.is_empty() || id.namespace == scope);
                covered && !held.contains(*id) && known.taken <= mark
            })
            .map(|(id, known)| (id.clone(), known.live.clone()))
            .collect();
        for (id, live) in &gone {
            inner.objects.remove(id);
            inner.bury(id, version(live));
        }
        inner.listed.insert((kind, scope.to_owned()));
        gone
    }

    /// One object.
    pub fn get(&self, id: &ObjectId) -> Option<Arc<Live>> {
        self.lock().objects.get(id).map(|known| known.live.clone())
    }

    /// How many objects are known.
    pub fn len(&self) -> usize {
        self.lock().objects.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every name of a kind.
    pub fn names(&self, kind: KindRef) -> Vec<ObjectId> {
        self.lock().objects.keys().filter(|id| id.kind == kind).cloned().collect()
    }

    /// Whether a complete list of the kind was ever seen in this scope.
    pub fn is_listed(&self, kind: KindRef, scope: &str) -> bool {
        self.lock().listed.contains(&(kind, scope.to_owned()))
    }

    /// The objects that a controller wants for one resource.
    pub fn select(&self, wants: &[Want]) -> BTreeMap<ObjectId, Live> {
        let inner = self.lock();
        let mut found = BTreeMap::new();
        for want in wants {
            match want {
                Want::Named(id) => {
                    if let Some(known) = inner.objects.get(id) {
                        found.insert(id.clone(), known.live.as_ref().clone());
                    }
                }
                Want::Labelled { kind, namespace, labels } => {
                    let first = ObjectId::new(*kind, namespace.clone(), "");
                    let matching = inner
                        .objects
                        .range(first..)
                        .take_while(|(id, _)| id.kind == *kind && &id.namespace == namespace)
                        .filter(|(_, known)| {
                            labels.iter().all(|(k, v)| known.live.label(k) == Some(v.as_str()))
                        });
                    for (id, known) in matching {
                        found.insert(id.clone(), known.live.as_ref().clone());
                    }
                }
            }
        }
        found
    }
}

/// A version as a number. Comparable within a kind from Kubernetes 1.35 (KEP-5504), and in
/// practice on every server backed by etcd before.
pub fn version(live: &Live) -> u64 {
    live.resource_version().parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KIND: KindRef = KindRef {
        group: "",
        version: "v1",
        kind: "ConfigMap",
        plural: "configmaps",
        namespaced: true,
    };

    fn state(uid: &str, version: u64) -> Live {
        Live::new(json!({"metadata": {"name": "a", "uid": uid,
            "resourceVersion": version.to_string()}}))
        .unwrap()
    }

    fn id() -> ObjectId {
        ObjectId::new(KIND, "ns", "a")
    }

    #[test]
    fn an_older_event_does_not_replace_our_own_write() {
        let store = Store::default();
        assert!(store.put(&id(), state("u", 5)));
        assert!(!store.put(&id(), state("u", 4)));
        assert_eq!(version(&store.get(&id()).unwrap()), 5);
    }

    #[test]
    fn a_late_event_does_not_bring_back_the_dead() {
        let store = Store::default();
        store.put(&id(), state("u", 5));
        store.remove(&id(), "u", 6);
        assert!(!store.put(&id(), state("u", 5)), "an older state of it");
        assert!(!store.put(&id(), state("v", 3)), "an incarnation before it");
        assert!(store.put(&id(), state("w", 8)), "the next incarnation");
    }

    #[test]
    fn an_object_that_left_the_selector_comes_back_with_it() {
        let store = Store::default();
        store.put(&id(), state("u", 5));
        store.remove(&id(), "u", 6);
        assert!(store.put(&id(), state("u", 7)), "the same object, labelled again");
    }

    #[test]
    fn what_a_list_did_not_hold_is_not_brought_back_by_a_late_answer() {
        let store = Store::default();
        store.put(&id(), state("u", 5));
        store.retain(KIND, "", &BTreeSet::new(), store.mark());
        assert!(!store.put(&id(), state("u", 5)));
    }

    #[test]
    fn g_70_the_memory_of_what_went_is_bounded() {
        let store = Store::default();
        for number in 0..3 * GRAVES {
            let name = ObjectId::new(KIND, "ns", format!("n{number}"));
            let version = number as u64 + 1;
            store.put(&name, state("u", version));
            store.remove(&name, "u", version);
            store.remove(&id(), "u", version);
        }
        assert!(store.is_empty());
        let inner = store.lock();
        assert!(inner.graves.len() <= GRAVES, "{} graves", inner.graves.len());
        assert!(inner.buried.len() <= GRAVES, "{} names", inner.buried.len());
        let burials: usize = inner.graves.values().map(|grave| grave.burials).sum();
        assert_eq!(burials, inner.buried.len(), "none is left over");
    }

    #[test]
    fn removing_one_incarnation_spares_the_next() {
        let store = Store::default();
        store.put(&id(), state("new", 9));
        store.remove(&id(), "old", 4);
        assert_eq!(store.get(&id()).unwrap().uid(), "new");
    }

    #[test]
    fn a_list_forgets_what_it_does_not_hold_but_not_what_is_newer() {
        let store = Store::default();
        store.put(&id(), state("u", 5));
        let mark = store.mark();
        let newer = ObjectId::new(KIND, "ns", "b");
        store.put(&newer, state("n", 12));
        assert!(!store.is_listed(KIND, ""));
        let gone = store.retain(KIND, "", &BTreeSet::new(), mark);
        assert!(store.is_listed(KIND, ""));
        assert_eq!(gone.len(), 1);
        assert!(store.get(&id()).is_none());
        assert!(store.get(&newer).is_some(), "written by us after the list was taken");
    }
}
