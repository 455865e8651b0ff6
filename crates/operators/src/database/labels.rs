//! Labels and annotations of a Database's children.
//!
//! The selector is an identity: it must never change, since a StatefulSet's cannot.

use std::collections::BTreeMap;

pub use phased::child::RESOURCE_UID_ANNOTATION;
use phased::child::{INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL};

/// Annotation with the recorded system identifier that a person gives up for lost.
pub const ACCEPT_DATA_LOSS_ANNOTATION: &str = "steadfast.dev/accept-data-loss";
/// Annotation on the pod template: digest of the settings that need a restart.
pub const CONFIG_ANNOTATION: &str = "steadfast.dev/config";
/// Label on pods: the part that the server plays, [`PRIMARY`] or [`STANDBY`].
pub const ROLE_LABEL: &str = "steadfast.dev/role";
/// Role of ordinal 0.
pub const PRIMARY: &str = "primary";
/// Role of the others.
pub const STANDBY: &str = "standby";

/// Label with the software's name.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
/// Label with the part that the object plays.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";

/// Labels by which pods and volumes are found.
pub fn selector(name: &str) -> BTreeMap<String, String> {
    [(NAME_LABEL, "postgresql"), (INSTANCE_LABEL, name)].map(owned).into()
}

/// Labels of every child.
pub fn child(name: &str) -> BTreeMap<String, String> {
    let mut labels = selector(name);
    labels.extend([(MANAGED_BY_LABEL, MANAGED_BY), (COMPONENT_LABEL, "database")].map(owned));
    labels
}

/// Labels by which the pods of one role are found.
pub fn role_selector(name: &str, role: &str) -> BTreeMap<String, String> {
    let mut labels = selector(name);
    labels.insert(ROLE_LABEL.to_owned(), role.to_owned());
    labels
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}
