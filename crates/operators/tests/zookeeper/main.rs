//! The ZookeeperCluster controller in a small world.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../bounds/mod.rs"]
mod bounds;
mod children;
mod definition;
mod ensemble;
mod histories;
mod refusals;
mod takeover;
mod upgrades;
