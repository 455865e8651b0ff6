//! The words of the server's decoder and converter for values of the wrong type.

use serde_json::Value;

use crate::schema::{Map, Scalar, Schema};

/// Layout of times in whole seconds, as Go writes layouts.
pub(super) const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
/// Layout of times in microseconds.
pub(super) const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// The converter's complaint about a value where `wanted`, a Go type, should be.
pub(super) fn unconverted(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
    if wanted.starts_with("map[") {
        format!("cannot restore map from {found}")
    } else if wanted.starts_with("[]") {
        format!("cannot restore slice from {found}")
    } else if wanted.contains('.') {
        format!("cannot restore struct from: {found}")
    } else if matches!(
        (value, wanted),
        (Value::Number(_), "string" | "int32" | "int64" | "float64")
    ) {
        format!("cannot convert {found} to {wanted}")
    } else {
        format!("unrecognized type: {wanted}")
    }
}

/// The name of a struct without its package: `StatefulSetSpec`.
pub(super) fn go_name(schema: &Schema) -> String {
    match schema {
        Schema::Named(name) => name.rsplit('.').next().unwrap_or(name).to_owned(),
        _ => String::new(),
    }
}

/// A type as Go prints it: `v1.StatefulSetSpec`, `[]v1.Container`, `map[string]string`.
pub(super) fn go_type(schema: &Schema) -> String {
    match schema {
        Schema::Named(name) => name.split_once('.').map_or(*name, |(_, rest)| rest).to_owned(),
        Schema::List(list) => format!("[]{}", go_type(&list.item)),
        Schema::Map(Map { element: Some(element), .. }) => {
            format!("map[string]{}", go_type(element))
        }
        Schema::Scalar(scalar) => scalar_name(*scalar).to_owned(),
        Schema::Map(_) | Schema::Any | Schema::AtomicAny => "interface {}".to_owned(),
    }
}

pub(super) fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Text => "string",
        Scalar::Bytes => "[]uint8",
        Scalar::Integer(8) => "uint8",
        Scalar::Integer(32) => "int32",
        Scalar::Integer(_) => "int64",
        Scalar::Number => "float64",
        Scalar::Boolean => "bool",
        Scalar::Quantity => "resource.Quantity",
        Scalar::IntOrString => "intstr.IntOrString",
        Scalar::Time => "v1.Time",
        Scalar::MicroTime => "v1.MicroTime",
        Scalar::Untyped => "interface {}",
    }
}

pub(super) fn bad_time(text: &str, layout: &str, rest: &str, wanted: &str) -> String {
    format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {wanted:?}")
}

/// What follows the second, unless it is exactly six digits as the server demands.
pub(super) fn not_microseconds(text: &str) -> Option<&str> {
    let rest = text.get(19..)?;
    let digits = rest
        .strip_prefix('.')
        .map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    (digits != 6).then_some(rest)
}
