//! A small, rule-keeping PostgreSQL behind the real wire protocol.
//!
//! Knows what operators use: identity, roles, databases, settings, simple tables, transactions,
//! locks, time limits, SCRAM. What it does not know it refuses in PostgreSQL's words; it never
//! guesses. Must not depend on any operator. Known differences are in the crate's README.

mod ast;
mod catalog;
mod conf;
pub(crate) mod conninfo;
mod data;
mod entrypoint;
mod evaluate;
mod functions;
mod parse;
pub(crate) mod psql;
mod refusal;
mod replication;
mod run;
mod scram;
mod server;
mod session;
mod settings;
mod token;
mod value;
mod wal;
mod wire;

pub use data::Data;
pub use refusal::Refusal;
pub use server::{Conditions, Server, Version};

pub(crate) use entrypoint::start;
pub(crate) use replication::{Backup, Order, password};

/// Version of the C library's collations in the image.
const COLLATION_VERSION: &str = "2.41";
