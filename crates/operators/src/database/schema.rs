//! Schema pieces of this resource beside those of [`crate::parts::schema`].
//!
//! Must not name fields; those stand in [`super::api`].

use schemars::{Schema, SchemaGenerator, json_schema};

pub(super) use crate::parts::schema::{amounts, object, objects, settings as parameters, texts};

/// A map of label-sized texts.
pub(super) fn short_texts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": {"type": "string", "maxLength": 63},
    })
}

/// Names of Secrets in the same namespace.
pub(super) fn secret_references(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 253}},
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    })
}
