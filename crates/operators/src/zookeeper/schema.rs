//! Schema pieces that the Rust types alone do not give: bounds that keep the cost of CEL rules
//! known, and Kubernetes' own free-form parts.
//!
//! Parts of pods are checked by the API server when the StatefulSet is written. Must not name fields
//! of the resource; those stand in [`super::api`].

use schemars::{Schema, SchemaGenerator, json_schema};

/// A map of texts.
pub(super) fn texts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": {"type": "string", "maxLength": 65536},
    })
}

/// Settings: text values only, so that `true` and `400` arrive as they were meant (field case C-23).
pub(super) fn settings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 200,
        "additionalProperties": {"type": "string", "maxLength": 4096},
    })
}

/// A part that the API server checks elsewhere.
pub(super) fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A list of such parts.
pub(super) fn objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}

/// A list of such parts that have a name.
pub(super) fn named_objects(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string", "maxLength": 253}},
            "x-kubernetes-preserve-unknown-fields": true,
        },
    })
}

/// Mounts.
pub(super) fn mounts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "items": {
            "type": "object",
            "required": ["name", "mountPath"],
            "properties": {
                "name": {"type": "string", "maxLength": 253},
                "mountPath": {"type": "string", "maxLength": 4096},
            },
            "x-kubernetes-preserve-unknown-fields": true,
        },
    })
}

/// Ports of a container.
pub(super) fn ports(_: &mut SchemaGenerator) -> Schema {
    let number = || json_schema!({"type": "integer", "minimum": 0, "maximum": 65535});
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "items": {
            "type": "object",
            "required": ["containerPort"],
            "properties": {
                "name": {"type": "string", "maxLength": 63},
                "containerPort": {"type": "integer", "minimum": 1, "maximum": 65535},
                "protocol": {"type": "string", "maxLength": 16, "default": "TCP"},
                "hostPort": number(),
                "hostIP": {"type": "string", "maxLength": 45},
            },
        },
    })
}

/// Amounts by resource name, as text or number.
fn amounts() -> Schema {
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

/// Requests and limits.
pub(super) fn resources(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {"limits": amounts(), "requests": amounts()},
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// The spec of a claim.
pub(super) fn claim(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "storageClassName": {"type": "string", "maxLength": 253},
            "resources": {
                "type": "object",
                "properties": {"limits": amounts(), "requests": amounts()},
                "x-kubernetes-preserve-unknown-fields": true,
            },
        },
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// Names of Secrets in the same namespace.
pub(super) fn secret_references(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 253}},
        },
    })
}

/// Names of pods; the replaced operator wrote `null` for none.
pub(super) fn pod_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "nullable": true,
        "items": {"type": "string"},
    })
}
