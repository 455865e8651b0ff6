//! The simulated systems beside Kubernetes: volumes' contents, the network, and applications.
//!
//! Must not read or write the store.

pub mod network;
pub mod postgres;
pub mod volumes;

pub use network::{Dialogue, Network};

/// Registers the programs of the models with the kubelet model.
pub(crate) fn install(model: &mut crate::builtin::Model) {
    model.programs.register(Box::new(postgres::start));
}
