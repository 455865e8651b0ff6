//! The labels of pods: those by which their set, the Services and the watch find them, and the one by
//! which a pod's part is told, `primary` on ordinal 0, `standby` on the others.
//!
//! A template is the same for all, so the operator writes the part on each pod. Nothing else of a
//! pod is ever written.

use std::collections::BTreeMap;

use phased::Live;

use super::context::{Context, Tending};
use super::labels::{self, PRIMARY, ROLE_LABEL, STANDBY};
use crate::parts::hidden;

/// The part of an ordinal.
pub fn of(ordinal: u32) -> &'static str {
    if ordinal == 0 { PRIMARY } else { STANDBY }
}

/// Whether a pod carries the label of its part.
pub fn is_assigned(ordinal: u32, pod: &Live) -> bool {
    pod.label(ROLE_LABEL) == Some(of(ordinal))
}

/// Whether a pod is labelled in this very pass: then nothing else is done to it.
pub fn is_being_labelled(context: &Context, ordinal: u32, pod: &Live) -> bool {
    hidden::differing::<Context>(pod, &wanted(&context.names.name, ordinal)).is_some()
}

/// Labels the pods of our own set that do not tell their part, or that somebody labelled otherwise.
pub fn assign(tending: &mut Tending<'_>) {
    let name = tending.context.names.name.clone();
    hidden::restore_labels(tending, |ordinal| wanted(&name, ordinal));
}

fn wanted(name: &str, ordinal: u32) -> BTreeMap<String, String> {
    let mut all = labels::child(name);
    all.insert(ROLE_LABEL.to_owned(), of(ordinal).to_owned());
    all
}
