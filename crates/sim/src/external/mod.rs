//! The simulated systems beside Kubernetes: volumes' contents, the network, and applications.
//!
//! Must not read or write the store.

pub mod network;
pub mod postgres;
mod shell;
pub mod volumes;
pub mod zookeeper;

use std::sync::Arc;

use crate::builtin::pods::program::{Launch, Surroundings};
pub use network::{Dialogue, Network};

/// Registers the programs of the models with the kubelet model.
pub(crate) fn install(model: &mut crate::builtin::Model) {
    model.programs.register(Box::new(postgres::start));
    model.programs.register(Box::new(scripted));
    let ground = Arc::new(zookeeper::Ground::default());
    let zookeeper =
        move |launch: &Launch, around: &mut Surroundings| zookeeper::start(&ground, launch, around);
    model.programs.register(Box::new(zookeeper));
}

/// Init containers of a PostgreSQL image that are a shell script.
fn scripted(
    launch: &Launch,
    around: &mut Surroundings,
) -> Option<Box<dyn crate::builtin::pods::program::Program>> {
    let words = launch.arguments();
    let shell = words.first().map(|word| word.rsplit('/').next().unwrap_or(""));
    let [_, option, script, ..] = words.as_slice() else { return None };
    let ours = launch.init && launch.image().contains("postgres") && option.starts_with("-");
    if !ours || !matches!(shell, Some("sh" | "bash" | "dash")) || !option.ends_with('c') {
        return None;
    }
    Some(Box::new(shell::Scripted::start(script, launch, around)))
}
