//! What volumes hold, kept apart from pods so that data outlives them.
//!
//! Must not know claims or pods; an identity is just text.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Files and application states, by volume identity and path below it.
#[derive(Default)]
pub struct Volumes {
    files: BTreeMap<(String, String), String>,
    states: BTreeMap<(String, String), Arc<dyn Any + Send + Sync>>,
    /// Files that only their owner may read.
    private: BTreeSet<(String, String)>,
    full: BTreeSet<String>,
}

impl Volumes {
    /// A file's text.
    pub fn file(&self, volume: &str, path: &str) -> Option<&str> {
        self.files.get(&(volume.to_owned(), path.to_owned())).map(String::as_str)
    }

    /// Writes a file.
    pub fn write(&mut self, volume: &str, path: &str, text: &str) {
        self.files.insert((volume.to_owned(), path.to_owned()), text.to_owned());
    }

    /// Removes a file.
    pub fn unlink(&mut self, volume: &str, path: &str) {
        let key = (volume.to_owned(), path.to_owned());
        self.files.remove(&key);
        self.private.remove(&key);
    }

    /// From now on nothing more fits onto the volume.
    pub fn fill(&mut self, volume: &str) {
        self.full.insert(volume.to_owned());
    }

    /// There is room again.
    pub fn free(&mut self, volume: &str) {
        self.full.remove(volume);
    }

    /// Whether nothing more fits.
    pub fn is_full(&self, volume: &str) -> bool {
        self.full.contains(volume)
    }

    /// Lets only the owner of a file read it, or everybody.
    pub(crate) fn close(&mut self, volume: &str, path: &str, closed: bool) {
        let key = (volume.to_owned(), path.to_owned());
        let _ = if closed { self.private.insert(key) } else { self.private.remove(&key) };
    }

    /// Whether only its owner may read a file.
    pub(crate) fn is_private(&self, volume: &str, path: &str) -> bool {
        self.private.contains(&(volume.to_owned(), path.to_owned()))
    }

    /// Every file of a volume, by its path.
    pub(crate) fn all<'a>(
        &'a self,
        volume: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        let files = self.files.iter().filter(move |(key, _)| key.0 == volume);
        files.map(|(key, text)| (key.1.as_str(), text.as_str()))
    }

    /// What an application keeps in the folder `path`.
    pub fn state<T: Any + Send + Sync>(&self, volume: &str, path: &str) -> Option<Arc<T>> {
        let state = self.states.get(&(volume.to_owned(), path.to_owned()))?;
        state.clone().downcast::<T>().ok()
    }

    /// Puts an application's state into the folder `path`.
    pub fn keep<T: Any + Send + Sync>(&mut self, volume: &str, path: &str, state: Arc<T>) {
        self.states.insert((volume.to_owned(), path.to_owned()), state);
    }

    /// Empties the folder `path`: its application state and its files.
    pub fn clear(&mut self, volume: &str, path: &str) {
        self.states.remove(&(volume.to_owned(), path.to_owned()));
        let below = |file: &str| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        let stays = |key: &(String, String)| key.0 != volume || !(path.is_empty() || below(&key.1));
        self.files.retain(|key, _| stays(key));
        self.private.retain(stays);
    }

    /// Forgets a volume and everything on it.
    pub fn destroy(&mut self, volume: &str) {
        self.files.retain(|key, _| key.0 != volume);
        self.states.retain(|key, _| key.0 != volume);
        self.private.retain(|key| key.0 != volume);
        self.full.remove(volume);
        self.destroy_below(volume);
    }

    /// Forgets every volume whose identity starts with `owner/`: the scratch volumes of a pod.
    pub(crate) fn destroy_below(&mut self, owner: &str) {
        let below = |volume: &str| volume.strip_prefix(owner).is_some_and(|s| s.starts_with('/'));
        self.files.retain(|key, _| !below(&key.0));
        self.states.retain(|key, _| !below(&key.0));
        self.private.retain(|key| !below(&key.0));
    }

    /// Whether the folder `path` of a volume holds files.
    pub fn holds_below(&self, volume: &str, path: &str) -> bool {
        self.names(volume, path).next().is_some()
    }

    /// Names in the folder `path` of a volume.
    pub fn names<'a>(&'a self, volume: &'a str, path: &'a str) -> impl Iterator<Item = &'a str> {
        let files = self.files.keys().filter(move |key| key.0 == volume);
        files.filter_map(move |key| {
            let rest = key.1.strip_prefix(path)?;
            let rest = if path.is_empty() { rest } else { rest.strip_prefix('/')? };
            rest.split('/').next()
        })
    }

    /// Whether anything is on the volume.
    pub fn is_empty(&self, volume: &str) -> bool {
        !self.files.keys().any(|key| key.0 == volume)
            && !self.states.keys().any(|key| key.0 == volume)
    }
}
