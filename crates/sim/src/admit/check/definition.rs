//! Definitions of custom kinds: what an update may not change.
//!
//! Their schemas are checked in `schema::crd`.

use serde_json::Value;

use super::report::{Node, Report};

/// CustomResourceDefinition.
pub(super) fn definition(object: &Node<'_>, old: Option<&Value>, report: &mut Report) {
    let Some(old) = old else { return };
    let spec = object.field("spec");
    for path in ["group", "scope", "names.kind", "names.plural"] {
        let node = spec.at(path);
        let before = Node::root(old).field("spec").at(path);
        if before.value != node.value {
            report.invalid(&node, "field is immutable");
        }
    }
}
