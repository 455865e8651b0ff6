//! The objects, one increasing resourceVersion, and a bounded history of changes for watches.
//!
//! Knows nothing about kinds or rules; whoever writes here has already checked everything.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

/// Identity of an object in storage. Versions of one API share the key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Key {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, lower-case name of the kind.
    pub plural: String,
    /// Namespace; empty for a cluster-wide object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl Key {
    /// A key from its four parts.
    pub fn new(group: &str, plural: &str, namespace: &str, name: &str) -> Key {
        Key {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// One change of one object: appeared, changed or vanished.
#[derive(Clone, Debug)]
pub struct Change {
    /// The resourceVersion the change produced.
    pub version: u64,
    /// What changed.
    pub key: Key,
    /// The object before; none if it appeared.
    pub before: Option<Arc<Value>>,
    /// The object after, carrying `version`; none if it vanished.
    pub after: Option<Arc<Value>>,
}

/// First version handed out is one above this, so that no test meets a version below 1000.
const FIRST_VERSION: u64 = 1000;
/// How many changes a watch can go back, unless configured otherwise.
const HISTORY: usize = 4096;

/// All objects of the cluster.
#[derive(Debug)]
pub struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    version: u64,
    history: VecDeque<Change>,
    keep: usize,
    /// Changes up to and including this version are forgotten.
    forgotten: u64,
}

impl Default for Store {
    fn default() -> Store {
        Store {
            objects: BTreeMap::new(),
            version: FIRST_VERSION,
            history: VecDeque::new(),
            keep: HISTORY,
            forgotten: 0,
        }
    }
}

impl Store {
    /// The object at `key`.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.objects.get(key).map(Arc::as_ref)
    }

    /// The object at `key`, shared.
    pub fn share(&self, key: &Key) -> Option<Arc<Value>> {
        self.objects.get(key).cloned()
    }

    /// Objects of one kind in key order; `namespace` none means everywhere.
    pub fn list<'a>(
        &'a self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Value)> + use<'a> {
        self.shared(group, plural, namespace).map(|(key, value)| (key, value.as_ref()))
    }

    fn shared<'a>(
        &'a self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> + use<'a> {
        let from = Key::new(group, plural, namespace.unwrap_or(""), "");
        let all = namespace.is_none();
        self.objects.range(from.clone()..).take_while(move |(key, _)| {
            key.group == from.group
                && key.plural == from.plural
                && (all || key.namespace == from.namespace)
        })
    }

    /// Objects of one kind and namespace whose names begin with that of `prefix`, in key order.
    pub fn named<'a>(
        &'a self,
        prefix: &Key,
    ) -> impl Iterator<Item = (&'a Key, &'a Value)> + use<'a> {
        let from = prefix.clone();
        let within = move |key: &Key| {
            key.name.starts_with(&from.name)
                && key.namespace == from.namespace
                && key.plural == from.plural
                && key.group == from.group
        };
        let all = self.objects.range(prefix.clone()..).take_while(move |(key, _)| within(key));
        all.map(|(key, value)| (key, value.as_ref()))
    }

    /// Every object.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.objects.iter().map(|(key, value)| (key, value.as_ref()))
    }

    /// The newest resourceVersion.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The oldest version from which a watch can still be resumed.
    pub fn oldest(&self) -> u64 {
        self.forgotten
    }

    /// Puts `object` at `key` under the next version, which is written into its metadata.
    pub fn put(&mut self, key: Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let after = Arc::new(object);
        let before = self.objects.insert(key.clone(), after.clone());
        self.record(key, before, Some(after.clone()));
        after
    }

    /// Takes the object at `key` away.
    pub fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        self.version += 1;
        self.record(key.clone(), Some(before.clone()), None);
        Some(before)
    }

    fn record(&mut self, key: Key, before: Option<Arc<Value>>, after: Option<Arc<Value>>) {
        self.history.push_back(Change { version: self.version, key, before, after });
        while self.history.len() > self.keep {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(change) = self.history.pop_front() {
            self.forgotten = change.version;
        }
    }

    /// Changes after `version`, oldest first; none if some of them are forgotten.
    pub fn since(&self, version: u64) -> Option<impl Iterator<Item = &Change>> {
        if version < self.forgotten {
            return None;
        }
        let start = self.history.partition_point(|change| change.version <= version);
        Some(self.history.range(start..))
    }

    /// Objects of one kind as they were at `version`; none if that is forgotten.
    pub fn at(
        &self,
        version: u64,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
    ) -> Option<BTreeMap<Key, Arc<Value>>> {
        let mut objects: BTreeMap<Key, Arc<Value>> = self
            .shared(group, plural, namespace)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let newer: Vec<&Change> = self.since(version)?.collect();
        for change in newer.into_iter().rev() {
            let key = &change.key;
            let wanted = key.group == group
                && key.plural == plural
                && namespace.is_none_or(|namespace| namespace == key.namespace);
            if !wanted {
                continue;
            }
            match &change.before {
                Some(before) => objects.insert(key.clone(), before.clone()),
                None => objects.remove(key),
            };
        }
        Some(objects)
    }

    /// Forgets every past change: each watch that resumes from before now meets 410.
    pub fn compact(&mut self) {
        while !self.history.is_empty() {
            self.forget_oldest();
        }
        self.forgotten = self.version;
    }

    /// How many changes to keep for resuming watches.
    pub fn keep_history(&mut self, changes: usize) {
        self.keep = changes.max(1);
        while self.history.len() > self.keep {
            self.forget_oldest();
        }
    }
}
