//! SQL values as the model keeps them.
//!
//! Must not know where values come from.

use std::cmp::Ordering;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    /// `numeric` and floating point, by their text.
    Decimal(String),
    Text(String),
    /// `pg_lsn`.
    Position(u64),
}

impl Value {
    pub(super) fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    pub(super) fn optional(text: Option<&str>) -> Value {
        text.map_or(Value::Null, Value::text)
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// As the wire's text format; none is NULL.
    pub(super) fn shown(&self) -> Option<String> {
        match self {
            Value::Null => None,
            Value::Bool(true) => Some("t".into()),
            Value::Bool(false) => Some("f".into()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Decimal(text) | Value::Text(text) => Some(text.clone()),
            Value::Position(position) => Some(super::wal::shown(*position)),
        }
    }

    /// A position, or a text that can be read as one.
    pub(super) fn position(&self) -> Option<u64> {
        match self {
            Value::Position(position) => Some(*position),
            Value::Text(text) => super::wal::parse(text.trim()),
            _ => None,
        }
    }

    /// The type's oid on the wire.
    pub(super) fn oid(&self) -> i32 {
        match self {
            Value::Null | Value::Text(_) => 25,
            Value::Bool(_) => 16,
            Value::Integer(number) if i32::try_from(*number).is_ok() => 23,
            Value::Integer(_) => 20,
            Value::Decimal(_) => 1700,
            Value::Position(_) => 3220,
        }
    }

    pub(super) fn truth(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            Value::Text(text) => super::settings::boolean(text),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            #[allow(clippy::cast_precision_loss, reason = "the model's numbers are small")]
            Value::Integer(number) => Some(*number as f64),
            Value::Decimal(text) | Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Order of two values that are not NULL; numbers as numbers, the rest as text.
    pub(super) fn order(&self, other: &Value) -> Ordering {
        if let (Value::Position(_), _) | (_, Value::Position(_)) = (self, other) {
            return self.position().cmp(&other.position());
        }
        let numeric = |value: &Value| matches!(value, Value::Integer(_) | Value::Decimal(_));
        if (numeric(self) || numeric(other))
            && let (Some(one), Some(two)) = (self.number(), other.number())
        {
            return one.partial_cmp(&two).unwrap_or(Ordering::Equal);
        }
        if let (Value::Bool(_), _) | (_, Value::Bool(_)) = (self, other) {
            return self.truth().cmp(&other.truth());
        }
        self.shown().cmp(&other.shown())
    }
}

/// Rows with named columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Relation {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Value>>,
}

impl Relation {
    pub(super) fn new(columns: &[&str]) -> Relation {
        Relation {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            rows: Vec::new(),
        }
    }
}
