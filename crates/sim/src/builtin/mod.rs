//! Built-in controllers. (Stub of the API owner; the BUILTIN owner fills it.)

use crate::cluster::Core;

/// State of the built-in controllers that is not in the store.
#[derive(Default)]
pub struct Builtin {}

impl Builtin {
    /// Runs whatever is due; returns when the next thing is.
    pub fn step(&mut self, _core: &mut Core) -> Option<jiff::Timestamp> {
        None
    }
}
