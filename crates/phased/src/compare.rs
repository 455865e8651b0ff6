//! Whether a declared field is in force, comparing as the server stores it.
//!
//! Only what is declared is looked at: fields that the server defaults or that others add are no
//! difference (design.md section 2, "Nothing is sent if nothing would change"; fault catalogue
//! G-27, G-28). Must not know how a kind's fields are stored; [`crate::stored`] does.

use std::fmt;

use serde_json::{Map, Value};

use crate::quantity::Quantity;
use crate::stored::{self, Matching};

/// The path of a field, `.spec.ports[0].port`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Path(pub Vec<Segment>);

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A key of an object.
    Field(String),
    /// An item of a list, by its place in the live object.
    Index(usize),
    /// A declared item that the live list lacks, by its merge key: `name=web`.
    Absent(String),
}

impl Path {
    /// The path of a field below this one.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.with(Segment::Field(name.to_owned()))
    }

    fn with(&self, segment: Segment) -> Self {
        let mut longer = self.clone();
        longer.0.push(segment);
        longer
    }

    /// The path with items named by their merge keys in `live` rather than by their place:
    /// `.spec.ports[port=5432,protocol=TCP].targetPort`.
    pub fn spelled(&self, live: &Value) -> String {
        let mut text = String::new();
        let mut walked = Self::default();
        let mut here = Some(live);
        for segment in &self.0 {
            let next = here.and_then(|value| segment.child(value));
            let keys = match (segment, stored::matching(&walked)) {
                (Segment::Index(_), Matching::Keys(keys)) => {
                    next.and_then(|item| stored::key_of(item, keys))
                }
                _ => None,
            };
            match keys {
                Some(keys) => text.push_str(&format!("[{}]", key_text(&keys))),
                None => text.push_str(&segment.to_string()),
            }
            walked.0.push(segment.clone());
            here = next;
        }
        text
    }
}

impl Segment {
    /// What this step leads to.
    pub(crate) fn child<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Field(name) => value.get(name),
            Self::Index(index) => value.get(index),
            Self::Absent(_) => None,
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| segment.fmt(f))
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |name: &str| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        match self {
            Self::Field(name) if is_plain(name) => write!(f, ".{name}"),
            Self::Field(name) => write!(f, "[{name}]"),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Absent(key) => write!(f, "[{key}]"),
        }
    }
}

/// The first declared field whose live value differs, in the order of the declaration.
///
/// `apiVersion` and `kind` are not compared: they name the object, and items of a list come
/// without them.
pub fn difference(wanted: &Value, live: &Value) -> Option<Path> {
    difference_but(wanted, live, &|_| false)
}

/// The same, without the fields for which `but` holds.
pub fn difference_but(wanted: &Value, live: &Value, but: But<'_>) -> Option<Path> {
    let root = Path::default();
    let Some(fields) = wanted.as_object() else { return values(wanted, live, &root, but) };
    let Some(stored) = live.as_object() else { return Some(root) };
    let declared = fields.iter().filter(|(name, _)| *name != "apiVersion" && *name != "kind");
    first_in_map(declared, stored, &root, but)
}

/// Which differences are none.
type But<'a> = &'a dyn Fn(&Path) -> bool;

/// A difference, unless it is none.
fn found(path: Path, but: But<'_>) -> Option<Path> {
    if but(&path) { None } else { Some(path) }
}

fn values(wanted: &Value, live: &Value, path: &Path, but: But<'_>) -> Option<Path> {
    let equal = match (wanted, live) {
        (Value::Null, _) => true,
        (Value::Object(wanted), Value::Object(live)) => return maps(wanted, live, path, but),
        (Value::Array(wanted), Value::Array(live)) => return lists(wanted, live, path, but),
        _ if stored::is_filled_by_server(path) && stored::is_dropped(wanted, path) => true,
        _ => scalars(wanted, live, path),
    };
    if equal { None } else { found(path.clone(), but) }
}

fn maps(
    wanted: &Map<String, Value>,
    live: &Map<String, Value>,
    path: &Path,
    but: But<'_>,
) -> Option<Path> {
    let extra = live.keys().filter(|key| !wanted.contains_key(*key));
    if stored::is_whole_map(path)
        && let Some(extra) = extra.map(|key| path.field(key)).find(|extra| !but(extra))
    {
        return Some(extra);
    }
    first_in_map(wanted.iter(), live, path, but)
}

fn first_in_map<'a>(
    mut declared: impl Iterator<Item = (&'a String, &'a Value)>,
    live: &Map<String, Value>,
    path: &Path,
    but: But<'_>,
) -> Option<Path> {
    declared.find_map(|(name, value)| {
        let below = path.field(name);
        match live.get(name) {
            None | Some(Value::Null) if stored::is_dropped(value, &below) => None,
            None => found(below, but),
            Some(stored) => values(value, stored, &below, but),
        }
    })
}

fn lists(wanted: &[Value], live: &[Value], path: &Path, but: But<'_>) -> Option<Path> {
    if stored::is_filled_by_server(path) && wanted.is_empty() {
        return None;
    }
    match stored::matching(path) {
        Matching::Keys(keys) => by_keys(wanted, live, (path, keys), but),
        Matching::Anywhere => anywhere(wanted, live, path, but),
        Matching::ByPlace => by_place(wanted, live, path, but),
    }
}

fn by_keys(
    wanted: &[Value],
    live: &[Value],
    (path, keys): (&Path, &[&'static str]),
    but: But<'_>,
) -> Option<Path> {
    let Some(wanted_keys) =
        wanted.iter().map(|item| stored::key_of(item, keys)).collect::<Option<Vec<_>>>()
    else {
        // A list of the same name in a type that has other keys.
        return by_place(wanted, live, path, but);
    };
    wanted.iter().zip(wanted_keys).find_map(|(item, key)| {
        match live.iter().position(|stored| stored::key_of(stored, keys).as_ref() == Some(&key)) {
            None => found(path.with(Segment::Absent(key_text(&key))), but),
            Some(place) => values(item, &live[place], &path.with(Segment::Index(place)), but),
        }
    })
}

fn anywhere(wanted: &[Value], live: &[Value], path: &Path, but: But<'_>) -> Option<Path> {
    wanted.iter().find_map(|item| {
        let equal = |stored: &Value| values(item, stored, path, &|_| false).is_none();
        if live.iter().any(equal) {
            None
        } else {
            found(path.with(Segment::Absent(plain(item))), but)
        }
    })
}

fn by_place(wanted: &[Value], live: &[Value], path: &Path, but: But<'_>) -> Option<Path> {
    if wanted.len() != live.len() {
        return found(path.clone(), but);
    }
    wanted.iter().zip(live).enumerate().find_map(|(place, (item, stored))| {
        values(item, stored, &path.with(Segment::Index(place)), but)
    })
}

fn scalars(wanted: &Value, live: &Value, path: &Path) -> bool {
    if stored::is_quantity(path)
        && let (Some(wanted), Some(live)) = (quantity(wanted), quantity(live))
    {
        return wanted == live;
    }
    match (wanted, live) {
        // Whole numbers are exact; `1` and `1.0` are one number written in two ways.
        (Value::Number(a), Value::Number(b)) if a.is_f64() != b.is_f64() => {
            a.as_f64() == b.as_f64()
        }
        _ => wanted == live,
    }
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

fn key_text(key: &[(&'static str, Value)]) -> String {
    let parts: Vec<String> = key.iter().map(|(name, value)| key_part(name, value)).collect();
    parts.join(",")
}

pub(crate) fn key_part(name: &str, value: &Value) -> String {
    format!("{name}={}", plain(value))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
