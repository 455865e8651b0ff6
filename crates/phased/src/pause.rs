//! The pause of a resource: an annotation that stops all writes but that of the status.
//!
//! Whoever decides, and whoever foresees or explains decisions, reads it here.

use crate::object::Live;

/// Annotation that stops all writes but status while it is `"true"`.
pub const PAUSED_ANNOTATION: &str = "steadfast.dev/paused";
/// Why nothing is done about what a finding tells; the words follow "because ".
pub const BECAUSE_PAUSED: &str = "the annotation steadfast.dev/paused is \"true\"";
/// Name of the reason that tells of it.
pub const PAUSED_REASON: &str = "Paused";

/// Whether a resource asks for no writes.
pub fn is_paused(root: &Live) -> bool {
    root.annotation(PAUSED_ANNOTATION) == Some("true")
}
