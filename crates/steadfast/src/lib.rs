//! The `steadfast` binary's parts, as a library so that tests can run them.
//!
//! Wires crates together; anything with a decision in it belongs further down.

pub mod args;
pub mod demo;
pub mod embedded;
pub mod logging;
pub mod manifests;
pub mod run;
