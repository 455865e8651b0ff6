//! The writes that a plan may contain: plain data, carried out in order.
//!
//! A step holds what to send and under which precondition; it never decides. The runner stops at
//! the first step that fails and plans again with the failure in the snapshot.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::Value;

use crate::fact::{SqlRequest, ZooKeeperRequest};
use crate::object::{Live, ObjectId};

mod exec;

pub use exec::ExecRequest;

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Server-side apply of a child.
    Apply(Apply),
    /// Plain create of an object that must never be overwritten. A conflict means "look again".
    CreateOnce(CreateOnce),
    /// Keys of an existing Secret that follow from another key of it.
    Derive(Derive),
    /// Delete with a uid precondition.
    Delete(Delete),
    /// Puts our finalizer on the resource, or takes it off.
    Finalizer(Finalizer),
    /// A change outside Kubernetes, behind a named gate.
    Act(Action),
}

/// Server-side apply with the controller's field manager.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// What is applied to.
    pub id: ObjectId,
    /// The fields we declare, `apiVersion` and `kind` included.
    pub intent: Value,
    /// What must be true of the object before.
    pub expect: Expect,
    /// Why, in words: `missing`, `spec.replicas differs, set by kubectl-edit`.
    pub why: String,
}

/// The precondition of an apply (design.md section 2, "Children").
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The object does not exist: confirmed by a live read, sent without force.
    Absent,
    /// This incarnation exists: sent with `metadata.uid`, with force.
    Uid(String),
}

/// Create of a generated object, such as a Secret with a fresh password.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateOnce {
    /// What is created.
    pub id: ObjectId,
    /// The object, but for generated values.
    pub template: Value,
    /// Values that the runner makes up. Sent as Secret `data`.
    pub generate: Vec<Generate>,
    /// Why.
    pub why: String,
}

/// A value that only the runner may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Generate {
    /// A fresh password of `length` characters out of `A-Za-z0-9` under `key`.
    Password {
        /// Key in the Secret's data.
        key: String,
        /// Number of characters, at least 24.
        length: usize,
    },
    /// A text in which each [`TextPiece::Generated`] is the value made for another key.
    Text {
        /// Key in the Secret's data.
        key: String,
        /// Its parts.
        pieces: Vec<TextPiece>,
    },
}

/// Part of a generated text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPiece {
    /// As it stands.
    Plain(String),
    /// The value generated for this key of the same Secret, percent-encoded (every byte but
    /// unreserved characters).
    Generated(String),
}

/// Every byte outside the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A value as it stands in a URI, whatever parser reads it (field case C-09).
pub fn encoded(value: &[u8]) -> String {
    percent_encode(value, RESERVED).to_string()
}

/// The text of `pieces`. Whoever compares a derived key and whoever writes it must agree to the
/// byte, or it would be written on every pass. A value that is not there counts as empty.
pub fn text(pieces: &[TextPiece], value_of: impl Fn(&str) -> Option<Vec<u8>>) -> String {
    let part = |piece: &TextPiece| match piece {
        TextPiece::Plain(part) => part.clone(),
        TextPiece::Generated(key) => encoded(&value_of(key).unwrap_or_default()),
    };
    pieces.iter().map(part).collect()
}

/// Keys of a Secret that follow from another key of the same Secret. The runner reads the Secret
/// live, computes the values, and applies just these keys under its uid.
#[derive(Clone, Debug, PartialEq)]
pub struct Derive {
    /// The Secret.
    pub id: ObjectId,
    /// The uid that it must have.
    pub uid: String,
    /// Each derived key with its parts; [`TextPiece::Generated`] stands for a key of the Secret.
    pub keys: Vec<(String, Vec<TextPiece>)>,
    /// Fields applied along with them (labels, owner references, `type`), so that the apply
    /// declares all that we own of the Secret.
    pub intent: Value,
    /// Why.
    pub why: String,
}

/// Delete of one incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// What is deleted.
    pub id: ObjectId,
    /// The uid that it must have.
    pub uid: String,
    /// The resourceVersion that it must have, where the decision rests on its content.
    pub resource_version: Option<String>,
    /// What becomes of its dependants.
    pub propagation: Propagation,
    /// Why.
    pub why: String,
}

impl Delete {
    /// Delete of the object as it was seen: under its uid, whatever its content is by then, with its
    /// dependants going afterwards.
    pub fn of(id: ObjectId, live: &Live, why: impl Into<String>) -> Self {
        Self {
            id,
            uid: live.uid().to_owned(),
            resource_version: None,
            propagation: Propagation::Background,
            why: why.into(),
        }
    }
}

/// Propagation policy of a delete, as Kubernetes names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Dependants go afterwards.
    Background,
    /// Dependants go first.
    Foreground,
    /// Dependants stay.
    Orphan,
}

/// A change of our own finalizer on the resource; foreign finalizers are never touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finalizer {
    /// Put it there. Skipped when a deletion is under way.
    Add(&'static str),
    /// Take it off.
    Remove(&'static str),
}

/// A change outside Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Its name, documented with the controller.
    pub name: &'static str,
    /// The gate that is open, by name.
    pub gate: &'static str,
    /// What is done.
    pub request: Request,
    /// Why.
    pub why: String,
}

/// What an action says, by protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// SQL statements that take effect.
    Sql(SqlRequest),
    /// Calls to a ZooKeeper ensemble.
    ZooKeeper(ZooKeeperRequest),
    /// A command in a container of a pod.
    Exec(ExecRequest),
}
