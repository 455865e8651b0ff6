//! The typed schema of a custom resource, as server-side apply needs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::flag;
use crate::schema::{
    Empty, Field, List, Map, Relation, Scalar, Schema, Strategic, object_metadata,
};

/// The schema of whole objects: what the CRD says, and the metadata every object has.
pub(super) fn root(source: &Value) -> Schema {
    let mut map = match schema(source) {
        Schema::Map(map) => map,
        _ => Map { element: Some(Arc::new(Schema::Any)), ..Map::default() },
    };
    for name in ["apiVersion", "kind"] {
        map.fields.insert(name.to_owned(), field(Schema::Scalar(Scalar::Text), None));
    }
    if let Some(metadata) = object_metadata() {
        map.fields.insert("metadata".to_owned(), field(metadata, None));
    }
    Schema::Map(map)
}

fn field(schema: Schema, default: Option<Value>) -> Field {
    Field {
        schema,
        default,
        empty: Empty::Kept,
        strategic: Strategic::default(),
        named: None,
        embedded: None,
    }
}

fn schema(source: &Value) -> Schema {
    if flag(source, "x-kubernetes-int-or-string") {
        return Schema::Scalar(Scalar::IntOrString);
    }
    match source["type"].as_str() {
        Some("string") => Schema::Scalar(Scalar::Text),
        Some("integer") => Schema::Scalar(Scalar::Integer(64)),
        Some("number") => Schema::Scalar(Scalar::Number),
        Some("boolean") => Schema::Scalar(Scalar::Boolean),
        Some("array") => Schema::List(List {
            item: Arc::new(schema(&source["items"])),
            relation: relation(source),
        }),
        Some("object") => object(source),
        _ => Schema::Any,
    }
}

fn relation(source: &Value) -> Relation {
    match source["x-kubernetes-list-type"].as_str() {
        Some("set") => Relation::Set,
        Some("map") => Relation::Keys(
            source["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|key| key.as_str().map(str::to_owned))
                .collect(),
        ),
        _ => Relation::Atomic,
    }
}

fn object(source: &Value) -> Schema {
    let fields: BTreeMap<String, Field> = source["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, source)| (name.clone(), field(schema(source), source.get("default").cloned())))
        .collect();
    let extra = &source["additionalProperties"];
    let open = flag(source, "x-kubernetes-preserve-unknown-fields")
        || *extra == true
        || (fields.is_empty() && extra.is_null());
    let element = if extra.is_object() {
        Some(Arc::new(schema(extra)))
    } else {
        open.then(|| Arc::new(Schema::Any))
    };
    let atomic = source["x-kubernetes-map-type"] == "atomic";
    Schema::Map(Map { fields, element, atomic })
}
