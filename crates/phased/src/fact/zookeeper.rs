//! Sessions with ZooKeeper: a few calls one after the other, then the end of the session.
//!
//! Numbers of errors are those of ZooKeeper's `KeeperException`. Must not interpret nodes.

/// `NoNode`: the parent of a node to be created, or the node to be written, does not exist.
pub const NO_NODE: i32 = -101;
/// `BadVersion`: the node or the configuration changed since it was read.
pub const BAD_VERSION: i32 = -103;
/// `NodeExists`: the node to be created is there.
pub const NODE_EXISTS: i32 = -110;

/// One session without credentials.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ZooKeeperRequest {
    /// Host name or address of a server.
    pub host: String,
    /// Its port for clients.
    pub port: u16,
    /// Calls in order; the session ends at the first that is refused.
    pub calls: Vec<ZooKeeperCall>,
    /// Bound on connecting and on each call, in seconds.
    pub timeout_seconds: u32,
}

impl ZooKeeperRequest {
    /// Whether the session changes nothing.
    pub fn only_reads(&self) -> bool {
        self.calls.iter().all(|call| matches!(call, ZooKeeperCall::Read { .. }))
    }
}

/// One call. Only an action may ask for one that changes something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZooKeeperCall {
    /// Data and version of a node. A node that does not exist is an answer.
    Read {
        /// Path of the node.
        path: String,
    },
    /// A persistent node that anybody may read and write.
    Create {
        /// Path of the node.
        path: String,
        /// Its data.
        data: String,
    },
    /// Data of a node, if it still has the version.
    Write {
        /// Path of the node.
        path: String,
        /// The new data.
        data: String,
        /// Version that was read.
        version: i32,
    },
    /// An incremental change of the ensemble's membership.
    Reconfigure {
        /// Members that join or change, `server.1=host:2888:3888:participant;2181`, with commas.
        joining: String,
        /// Ids of members that leave, with commas.
        leaving: String,
        /// Version of the configuration that it changes.
        from: i64,
    },
}

/// A node as it was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its data; bytes that are no UTF-8 are replaced.
    pub data: String,
    /// Version of the data.
    pub version: i32,
}

/// How a session went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZooKeeperOutcome {
    /// Every call succeeded: the node of each; `None` for one that does not exist, or that the call
    /// did not read.
    Done(Vec<Option<Node>>),
    /// The server refused a call.
    Refused {
        /// Number of the error.
        code: i32,
        /// Index of the call.
        call: usize,
    },
    /// No session came about, or it ended early. Unknown is not "down".
    Unreachable {
        /// What happened, such as `connection refused`.
        message: String,
    },
}
