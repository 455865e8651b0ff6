//! Objects of the cluster as data: what names them, and what a snapshot knows of one.
//!
//! Must not interpret a kind's own fields; controllers do that with Kubernetes' own types.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A kind of object, with everything needed to address it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindRef {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Version, such as `v1`.
    pub version: &'static str,
    /// Kind, such as `StatefulSet`.
    pub kind: &'static str,
    /// Plural resource name, such as `statefulsets`.
    pub plural: &'static str,
    /// Whether objects of the kind live in a namespace.
    pub namespaced: bool,
}

impl KindRef {
    /// The kind of a type known at compile time.
    pub fn of<K: k8s_openapi::Resource>(namespaced: bool) -> Self {
        Self {
            group: K::GROUP,
            version: K::VERSION,
            kind: K::KIND,
            plural: K::URL_PATH_SEGMENT,
            namespaced,
        }
    }

    /// `group/version`, or just the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Names one object. Two incarnations of a name share it; their uids differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// Its kind.
    pub kind: KindRef,
    /// Its namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectId {
    /// An object of `kind` called `name` in `namespace`.
    pub fn new(kind: KindRef, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind.kind, self.namespace, self.name)
        }
    }
}

/// An object as the server last showed it.
///
/// Snapshots, looks and forecasts hand it on many times, so a clone shares what was read; nobody can
/// change it. `Debug` prints identity only, since the value may hold a Secret's data.
#[derive(Clone, PartialEq)]
pub struct Live(Arc<State>);

/// What was read of an object.
#[derive(PartialEq)]
pub struct State {
    /// The whole object. Secrets' `data` are present only for objects that the controller wants.
    pub value: Value,
    /// Its metadata, read once.
    pub metadata: ObjectMeta,
}

impl Deref for Live {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

impl Live {
    /// Reads the metadata of `value`.
    ///
    /// # Errors
    /// When `metadata` is missing or malformed.
    pub fn new(value: Value) -> Result<Self, serde_json::Error> {
        let metadata = ObjectMeta::deserialize(value.get("metadata").unwrap_or(&Value::Null))?;
        Ok(Self(Arc::new(State { value, metadata })))
    }

    /// The uid; empty only for an object that no server has stored.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The version under which the server stored this state.
    pub fn resource_version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }

    /// When deletion was asked for, if it was.
    pub fn deletion_time(&self) -> Option<Timestamp> {
        self.metadata.deletion_timestamp.as_ref().map(|t| t.0)
    }

    /// The owner with `controller: true`, if there is one.
    pub fn controller_owner(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.iter().flatten().find(|o| o.controller == Some(true))
    }

    /// Whether `uid` is among the owners.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.metadata.owner_references.iter().flatten().any(|o| o.uid == uid)
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The object as one of Kubernetes' own types.
    ///
    /// # Errors
    /// When the stored object does not fit the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&self.value)
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.value.get("kind").and_then(Value::as_str).unwrap_or("object");
        let name = self.metadata.name.as_deref().unwrap_or_default();
        write!(f, "{kind} {name} uid={} rv={}", self.uid(), self.resource_version())
    }
}
