//! Schema pieces of this resource beside those of [`crate::parts::schema`].
//!
//! Must not name fields; those stand in [`super::api`].

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::parts::schema::amounts;
pub(super) use crate::parts::schema::{object, objects, settings, texts};

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

/// Requests and limits.
pub(super) fn resources(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {"limits": amounts(generator), "requests": amounts(generator)},
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// The spec of a claim.
pub(super) fn claim(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "storageClassName": {"type": "string", "maxLength": 253},
            "resources": {
                "type": "object",
                "properties": {"limits": amounts(generator), "requests": amounts(generator)},
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
