//! Volumes of pods as folders of this machine.

pub(crate) mod claims;
pub(crate) mod payload;
pub(crate) mod place;
pub(crate) mod writer;
