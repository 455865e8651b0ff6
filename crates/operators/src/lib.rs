//! `operators`: the pure controllers of the suite, one module per custom resource.
//!
//! Each module turns one snapshot into one plan and does nothing else: no client, no clock, no
//! randomness, no environment, no files. What every controller needs of the cluster is listed in
//! [`catalog`].

pub mod catalog;
pub mod database;
mod parts;
pub mod zookeeper;
