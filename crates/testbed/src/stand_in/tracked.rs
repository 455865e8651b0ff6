//! Objects of one kind as a watch tells of them.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::runtime::watcher::Event;

use super::script::{Key, key};

/// The present objects. After a broken watch the list is replaced as a whole, so none outlives its end.
pub(crate) struct Tracked<K> {
    present: BTreeMap<Key, K>,
    listing: BTreeMap<Key, K>,
}

impl<K> Default for Tracked<K> {
    fn default() -> Self {
        Self { present: BTreeMap::new(), listing: BTreeMap::new() }
    }
}

impl<K: ResourceExt> Tracked<K> {
    /// Takes note of an event.
    pub(crate) fn note(&mut self, event: Event<K>) {
        match event {
            Event::Apply(object) => {
                self.present.insert(key(&object), object);
            }
            Event::Delete(object) => {
                self.present.remove(&key(&object));
            }
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => {
                self.listing.insert(key(&object), object);
            }
            Event::InitDone => self.present = std::mem::take(&mut self.listing),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&K> {
        self.present.get(key)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &K> {
        self.present.values()
    }
}
