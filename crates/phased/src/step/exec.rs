//! A command in a container of a pod: what has no other door than that of its node.
//!
//! Arguments can be read by everybody who may list the node's processes, and the API server logs them.
//! Whatever must stay secret stands in the input, as a place that the runner fills.

use crate::fact::SqlText;
use crate::object::ObjectId;

/// One run of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecRequest {
    /// The pod.
    pub pod: ObjectId,
    /// The uid that it must have. The API takes none along with a command, so the runner reads the pod
    /// right before.
    pub uid: String,
    /// The container, which must be running.
    pub container: String,
    /// The program and its arguments. Never a secret.
    pub command: Vec<String>,
    /// Lines for standard input, each ended by a line feed. The last one must end the program: older
    /// servers cannot tell it that nothing more comes.
    pub input: Vec<SqlText>,
    /// Bound on the whole, in seconds.
    pub timeout_seconds: u32,
}
