//! A small, rule-keeping ZooKeeper behind the real wire protocol and the four-letter words.
//!
//! Knows what operators use: nodes with versions, quorum and elections, incremental reconfiguration,
//! settings, and the scripts of the image family that register members by themselves. What it does
//! not know it refuses by ZooKeeper's own error. Must not depend on any operator. Known differences
//! are in the crate's MODELS.md.

mod ensemble;
mod ground;
mod image;
mod members;
mod running;
mod scripts;
mod server;
mod session;
mod tree;
mod wire;
mod words;

pub use server::{Conditions, Server};

pub(crate) use ground::Ground;
pub(crate) use image::start;

/// The request does not exist here.
const UNIMPLEMENTED: i32 = -6;
/// Arguments that mean nothing.
const BAD_ARGUMENTS: i32 = -8;
/// No quorum of the new configuration is connected and up to date.
const NEW_CONFIG_NO_QUORUM: i32 = -13;
/// No such node, or no parent.
const NO_NODE: i32 = -101;
/// Not allowed.
const NO_AUTH: i32 = -102;
/// Another version is stored.
const BAD_VERSION: i32 = -103;
/// The node exists.
const NODE_EXISTS: i32 = -110;
/// The node has children.
const NOT_EMPTY: i32 = -111;
/// `reconfigEnabled` is not set.
const RECONFIG_DISABLED: i32 = -123;
