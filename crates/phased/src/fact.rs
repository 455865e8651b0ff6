//! Facts of the world outside the watched objects: what a plan may ask, and what it may hear.
//!
//! Questions are plain data in the vocabulary of a protocol, so that the controller decides what
//! to ask and the runner merely speaks the protocol. Questions change nothing, but for
//! [`Access::Probe`], whose effect is rolled back. Must not hold a secret's value: credentials are
//! named by [`SecretKey`] and resolved by the runner.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::object::{Live, ObjectId};

mod word;
mod zookeeper;

pub use word::{WordOutcome, WordRequest};
pub use zookeeper::{
    BAD_VERSION, NO_NODE, NODE_EXISTS, Node, ZooKeeperCall, ZooKeeperOutcome, ZooKeeperRequest,
};

/// Answers by question. A question that was not asked yet is absent; a question that could not be
/// answered holds its [`Trouble`], never an empty answer (design.md section 2).
pub type Facts = BTreeMap<Question, Answer>;

/// What came back for a question.
pub type Answer = Result<Reply, Trouble>;

/// Something a plan wants to know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// One object, read live from the API server: `None` when it does not exist.
    Object(ObjectId),
    /// Events about objects with these uids, newest last, at most 20 for each.
    Events {
        /// The namespace to look in.
        namespace: String,
        /// uids of the objects that the Events are about.
        about: Vec<String>,
    },
    /// Whether something outside answers.
    Reach(Reach),
    /// SQL over PostgreSQL's wire protocol.
    Sql(SqlRequest),
    /// A word over TCP.
    Word(WordRequest),
    /// Nodes of a ZooKeeper ensemble; reads only.
    ZooKeeper(ZooKeeperRequest),
}

/// How an external dependency is tried (reference/database.md section 2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// A TCP connection to `host:port` is accepted.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
        /// Time-out in seconds.
        timeout_seconds: u32,
    },
    /// A GET of the URL answers 2xx. Redirects are not followed, the body is not read.
    Http {
        /// `http://` or `https://` URL.
        url: String,
        /// Time-out in seconds.
        timeout_seconds: u32,
    },
}

/// Names one key of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretKey {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The key in `data`.
    pub key: String,
}

/// How a SQL session logs in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Password {
    /// With the value of this Secret key, byte for byte.
    Secret(SecretKey),
    /// With a random password that is certainly wrong: the login must be refused.
    Wrong,
}

/// What a SQL session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Statements run in one read-only transaction.
    ReadOnly,
    /// Statements run in one transaction that is always rolled back.
    Probe,
    /// Each statement runs on its own and takes effect. Only an action may ask for it.
    Change,
}

/// One SQL session. Simple query protocol; statement and lock time-outs are set by the runner from
/// `timeout_seconds`, and the search path is fixed to `pg_catalog` (fault catalogue PG-15).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SqlRequest {
    /// Host name or address of the server.
    pub host: String,
    /// Port, usually 5432.
    pub port: u16,
    /// Role to log in as.
    pub user: String,
    /// Its password.
    pub password: Password,
    /// Database to connect to.
    pub database: String,
    /// What the session may do.
    pub access: Access,
    /// Statements in order; the session ends at the first error.
    pub statements: Vec<SqlText>,
    /// Bound on connecting and on each statement, in seconds.
    pub timeout_seconds: u32,
}

/// A statement, with places where the runner puts what a plan must not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SqlText(pub Vec<SqlPiece>);

impl SqlText {
    /// A statement without such places.
    pub fn plain(text: impl Into<String>) -> Self {
        Self(vec![SqlPiece::Text(text.into())])
    }
}

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SqlPiece {
    /// SQL as it stands. Identifiers and literals are already quoted.
    Text(String),
    /// A quoted literal with the SCRAM-SHA-256 verifier of this Secret's password, so that the
    /// password itself reaches neither the server nor its log (fault catalogue PG-10).
    Verifier(SecretKey),
}

/// A successful answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// To [`Question::Object`].
    Object(Option<Live>),
    /// To [`Question::Events`].
    Events(Vec<SeenEvent>),
    /// To [`Question::Reach`]: it answered.
    Reached,
    /// To [`Question::Sql`]: what the server said, errors of the server included.
    Sql(SqlOutcome),
    /// To [`Question::Word`].
    Word(WordOutcome),
    /// To [`Question::ZooKeeper`]: what the server said, its errors included.
    ZooKeeper(ZooKeeperOutcome),
}

/// An Event of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeenEvent {
    /// When it was last seen.
    pub last_seen: Timestamp,
    /// uid of the object that it is about.
    pub about: String,
    /// Kind and name of that object, `Kind/name`.
    pub object: String,
    /// `Normal` or `Warning`.
    pub kind: String,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
}

/// How a SQL session went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlOutcome {
    /// Every statement ran: the rows of each, as text.
    Rows(Vec<Vec<Vec<Option<String>>>>),
    /// The server refused the login or a statement.
    Refused {
        /// SQLSTATE, five characters.
        code: String,
        /// The server's message, without the statement.
        message: String,
        /// Index of the statement that failed; `None` when the login did.
        statement: Option<usize>,
    },
    /// No server could be reached, or it did not answer in time. Unknown is not "down".
    Unreachable {
        /// What happened, such as `connection refused`.
        message: String,
    },
    /// The Secret or the key that holds the password does not exist or is unusable.
    NoPassword {
        /// Which key, and why.
        message: String,
    },
}

/// Why something could not be read or written, sorted by what helps (design.md section 2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trouble {
    /// Who must act.
    pub fate: Fate,
    /// A word for programs: the API's `reason` (`Forbidden`, `Invalid`, `Timeout`, …).
    pub reason: String,
    /// A sentence for people. Never a secret.
    pub message: String,
}

/// Who must act for an error to go away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// A person must change something: permissions, quota, the resource.
    UserMustAct,
    /// The world may heal: try again later.
    WorldMayHeal,
    /// We are wrong: log it, count it, serve the others.
    WeAreWrong,
}
