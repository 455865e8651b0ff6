//! One step of a field path, its order and its two spellings.
//!
//! Knows nothing of schemas: which step a list item gets is decided in `walk`.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

/// A single JSON value with a total order, as set items and list keys need.
#[derive(Clone, Debug)]
pub(crate) struct Single(pub(crate) Value);

impl Single {
    fn rank(&self) -> u8 {
        match self.0 {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
}

impl Ord for Single {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)),
            },
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Null, Value::Null) => Ordering::Equal,
            (a, b) => {
                self.rank().cmp(&other.rank()).then_with(|| a.to_string().cmp(&b.to_string()))
            }
        }
    }
}

impl PartialOrd for Single {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Single {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Single {}

/// One step of a path. The order of the variants is the order in which paths are listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    /// A field of a struct or a key of a map.
    Field(String),
    /// The list item with these key fields, sorted by name.
    Keys(Vec<(String, Single)>),
    /// The item of a set.
    Item(Single),
    /// The item at a position.
    Index(i64),
}

impl Element {
    /// As `fieldsV1` spells it: `f:spec`, `k:{"name":"db"}`, `v:"a"`, `i:0`.
    pub(crate) fn encode(&self) -> String {
        match self {
            Element::Field(name) => format!("f:{name}"),
            Element::Keys(keys) => {
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.0))
                    .collect();
                format!("k:{{{}}}", keys.join(","))
            }
            Element::Item(value) => format!("v:{}", value.0),
            Element::Index(index) => format!("i:{index}"),
        }
    }

    /// Reads the spelling of `fieldsV1`; none if it is not one.
    pub(crate) fn decode(text: &str) -> Option<Element> {
        let (mark, rest) = text.split_at_checked(2)?;
        match mark {
            "f:" => Some(Element::Field(rest.to_owned())),
            "k:" => match serde_json::from_str(rest).ok()? {
                Value::Object(keys) => Some(Element::Keys(
                    keys.into_iter().map(|(name, value)| (name, Single(value))).collect(),
                )),
                _ => None,
            },
            "v:" => Some(Element::Item(Single(serde_json::from_str(rest).ok()?))),
            "i:" => Some(Element::Index(rest.parse().ok()?)),
            _ => None,
        }
    }
}

impl fmt::Display for Element {
    /// As messages spell it: `.spec`, `[name="db"]`, `[="a"]`, `[0]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(f, ".{name}"),
            Element::Keys(keys) => {
                let keys: Vec<String> =
                    keys.iter().map(|(name, value)| format!("{name}={}", value.0)).collect();
                write!(f, "[{}]", keys.join(","))
            }
            Element::Item(value) => write!(f, "[={}]", value.0),
            Element::Index(index) => write!(f, "[{index}]"),
        }
    }
}
