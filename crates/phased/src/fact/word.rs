//! A word said over TCP, and all that is answered: ZooKeeper's four-letter words, among others.

/// A short text sent to a server that answers and ends the connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WordRequest {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// What is sent, such as `srvr`.
    pub word: String,
    /// Bound on the whole exchange, in seconds.
    pub timeout_seconds: u32,
}

/// How the exchange went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordOutcome {
    /// Everything that was answered, at most 64 KiB; bytes that are no UTF-8 are replaced.
    Said(String),
    /// Nobody could be reached, or did not answer in time. Unknown is not "down".
    Unreachable {
        /// What happened, such as `connection refused`.
        message: String,
    },
}
