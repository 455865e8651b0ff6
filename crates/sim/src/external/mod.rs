//! The simulated systems beside Kubernetes: volumes' contents, the network, and applications.
//!
//! Must not read or write the store.

pub mod network;
pub mod volumes;

pub use network::{Dialogue, Network};

/// Registers the programs of the models with the kubelet model.
pub(crate) fn install(_model: &mut crate::builtin::Model) {}
