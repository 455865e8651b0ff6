//! The few protobuf bodies that kubectl's typed commands send, turned into JSON.
//!
//! Knows the messages in its table and no others: everything else is asked for in JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// First bytes of every body, before the envelope.
const MAGIC: &[u8] = b"k8s\0";

/// How a field is read.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Texts,
    Number,
    Flag,
    TextMap,
    BytesMap,
    Message(&'static [Field]),
}

/// Field number, JSON name, shape.
type Field = (u64, &'static str, Shape);

const METADATA: &[Field] = &[
    (1, "name", Shape::Text),
    (2, "generateName", Shape::Text),
    (3, "namespace", Shape::Text),
    (5, "uid", Shape::Text),
    (6, "resourceVersion", Shape::Text),
    (11, "labels", Shape::TextMap),
    (12, "annotations", Shape::TextMap),
    (14, "finalizers", Shape::Texts),
];
const DELETE_OPTIONS: &[Field] = &[
    (1, "gracePeriodSeconds", Shape::Number),
    (
        2,
        "preconditions",
        Shape::Message(&[(1, "uid", Shape::Text), (2, "resourceVersion", Shape::Text)]),
    ),
    (3, "orphanDependents", Shape::Flag),
    (4, "propagationPolicy", Shape::Text),
    (5, "dryRun", Shape::Texts),
];
const ATTRIBUTES: &[Field] = &[
    (1, "namespace", Shape::Text),
    (2, "verb", Shape::Text),
    (3, "group", Shape::Text),
    (4, "version", Shape::Text),
    (5, "resource", Shape::Text),
    (6, "subresource", Shape::Text),
    (7, "name", Shape::Text),
];
/// Kinds by name, with their fields.
const MESSAGES: &[(&str, &[Field])] = &[
    ("Namespace", &[(1, "metadata", Shape::Message(METADATA))]),
    ("ServiceAccount", &[(1, "metadata", Shape::Message(METADATA))]),
    (
        "ConfigMap",
        &[
            (1, "metadata", Shape::Message(METADATA)),
            (2, "data", Shape::TextMap),
            (3, "binaryData", Shape::BytesMap),
            (4, "immutable", Shape::Flag),
        ],
    ),
    (
        "Secret",
        &[
            (1, "metadata", Shape::Message(METADATA)),
            (2, "data", Shape::BytesMap),
            (3, "type", Shape::Text),
            (4, "stringData", Shape::TextMap),
            (5, "immutable", Shape::Flag),
        ],
    ),
    (
        "Eviction",
        &[
            (1, "metadata", Shape::Message(METADATA)),
            (2, "deleteOptions", Shape::Message(DELETE_OPTIONS)),
        ],
    ),
    ("DeleteOptions", DELETE_OPTIONS),
    (
        "SelfSubjectAccessReview",
        &[
            (1, "metadata", Shape::Message(METADATA)),
            (2, "spec", Shape::Message(&[(1, "resourceAttributes", Shape::Message(ATTRIBUTES))])),
        ],
    ),
    ("SelfSubjectReview", &[(1, "metadata", Shape::Message(METADATA))]),
];

/// The JSON of a protobuf body; none for a kind that is not in the table or a broken body.
pub(crate) fn decode(body: &[u8]) -> Option<Value> {
    let envelope =
        [(1, "type", Shape::Message(&[(1, "apiVersion", Shape::Text), (2, "kind", Shape::Text)]))];
    let body = body.strip_prefix(MAGIC)?;
    let kind = message(body, &envelope)?["type"].clone();
    let (_, fields) = MESSAGES.iter().find(|(name, _)| kind["kind"] == *name)?;
    let raw = wire(body)?.into_iter().find_map(|(number, part)| match part {
        Part::Bytes(bytes) if number == 2 => Some(bytes),
        _ => None,
    })?;
    let mut object = message(raw, fields)?;
    object["apiVersion"] = kind["apiVersion"].clone();
    object["kind"] = kind["kind"].clone();
    Some(object)
}

enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The fields of a message by number, in order.
fn wire(mut bytes: &[u8]) -> Option<Vec<(u64, Part<'_>)>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let part = match tag & 7 {
            0 => Part::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (taken, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Part::Bytes(taken)
            }
            _ => return None,
        };
        parts.push((tag >> 3, part));
    }
    Some(parts)
}

fn message(bytes: &[u8], fields: &[Field]) -> Option<Value> {
    let mut object = json!({});
    for (number, part) in wire(bytes)? {
        let Some((_, name, shape)) = fields.iter().find(|(known, ..)| *known == number) else {
            continue;
        };
        put(&mut object[*name], *shape, part)?;
    }
    // An absent text is sent as an empty one.
    if let Some(map) = object.as_object_mut() {
        map.retain(|_, value| *value != json!("") && !value.is_null());
    }
    Some(object)
}

fn put(place: &mut Value, shape: Shape, part: Part<'_>) -> Option<()> {
    match (shape, part) {
        (Shape::Number, Part::Number(number)) => *place = json!(number),
        (Shape::Flag, Part::Number(number)) => *place = json!(number != 0),
        (Shape::Text, Part::Bytes(bytes)) => *place = text(bytes)?,
        (Shape::Message(fields), Part::Bytes(bytes)) => *place = message(bytes, fields)?,
        (Shape::Texts, Part::Bytes(bytes)) => {
            if !place.is_array() {
                *place = json!([]);
            }
            place.as_array_mut()?.push(text(bytes)?);
        }
        (Shape::TextMap, Part::Bytes(bytes)) => {
            let (key, value) = entry(bytes)?;
            map_of(place)?.insert(key, text(value)?);
        }
        (Shape::BytesMap, Part::Bytes(bytes)) => {
            let (key, value) = entry(bytes)?;
            map_of(place)?.insert(key, json!(STANDARD.encode(value)));
        }
        _ => return None,
    }
    Some(())
}

fn text(bytes: &[u8]) -> Option<Value> {
    std::str::from_utf8(bytes).ok().map(|text| json!(text))
}

fn map_of(place: &mut Value) -> Option<&mut Map<String, Value>> {
    if !place.is_object() {
        *place = json!({});
    }
    place.as_object_mut()
}

fn entry(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (mut key, mut value): (&[u8], &[u8]) = (b"", b"");
    for (number, part) in wire(bytes)? {
        match (number, part) {
            (1, Part::Bytes(bytes)) => key = bytes,
            (2, Part::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    Some((std::str::from_utf8(key).ok()?.to_owned(), value))
}
