//! The `steadfast` binary's parts, as a library so that tests can run them.
//!
//! Wires crates together; anything with a decision in it belongs further down.

pub mod args;
pub mod complete;
pub mod controllers;
pub mod demo;
pub mod embedded;
pub mod explain;
pub mod graph;
pub mod kinds;
pub mod link;
pub mod logging;
pub mod manifest;
pub mod manifests;
pub mod output;
pub mod plan;
pub mod render;
pub mod run;
pub mod usage;
