//! Schema pieces that the Rust types alone do not give: bounds that keep the cost of CEL rules
//! known, and Kubernetes' own free-form parts.
//!
//! Parts of pods are checked by the API server when the StatefulSet is written. Must not name fields
//! of a resource.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Settings: text values only, bounded, so that `true` and `400` arrive as they were meant (field
/// case C-23).
pub(crate) fn settings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 200,
        "additionalProperties": {"type": "string", "maxLength": 4096},
    })
}

/// A map of annotation-sized texts.
pub(crate) fn texts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": {"type": "string", "maxLength": 65536},
    })
}

/// Quantities by resource name, as text or number.
pub(crate) fn amounts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
        },
    })
}

/// A part that the API server checks elsewhere.
pub(crate) fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A list of such parts.
pub(crate) fn objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}
