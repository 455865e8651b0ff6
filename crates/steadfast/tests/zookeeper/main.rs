//! ZookeeperClusters on the simulated cluster, against the model of ZooKeeper (docs/zookeeper.md).
//!
//! Everything here runs under virtual time.

#[path = "../support/mod.rs"]
mod support;

mod bring_up;
mod clients;
mod crashes;
mod failed_upgrades;
mod repairs;
mod rolls;
mod scaling;
mod takeover;
