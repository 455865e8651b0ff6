//! Typed schemas: what is a list with keys, what is one value, what is a quantity.
//!
//! Server-side apply, strategic merge and normalisation all walk these. A schema says how data
//! merges and how the server writes it down; it does not say what is valid (that is `admit` for
//! built-in kinds and `crd` for custom ones).

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

pub mod crd;
mod stored;
mod table;

pub use stored::Decoded;

/// A typed schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Schema {
    /// Anything: maps merge key by key, lists are one value.
    Any,
    /// Anything, as one value.
    AtomicAny,
    /// A type of the built-in table, by name.
    Named(&'static str),
    /// A single value.
    Scalar(Scalar),
    /// A list.
    List(List),
    /// A struct or a map.
    Map(Map),
}

/// Kinds of single values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Text.
    Text,
    /// Base64 text.
    Bytes,
    /// An integer of so many bits.
    Integer(u8),
    /// A floating point number.
    Number,
    /// True or false.
    Boolean,
    /// A resource quantity.
    Quantity,
    /// A number or a text.
    IntOrString,
    /// A time stamp in whole seconds.
    Time,
    /// A time stamp in microseconds.
    MicroTime,
    /// A value of a custom resource whose type the schema leaves open.
    Untyped,
}

/// How the items of a list relate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The list is one value.
    Atomic,
    /// A set of single values.
    Set,
    /// Items are told apart by these fields.
    Keys(Vec<String>),
}

/// A list type.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// Type of the items.
    pub item: Arc<Schema>,
    /// How items relate.
    pub relation: Relation,
}

/// A struct (`fields`), a map (`element`), or both.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Map {
    /// Declared fields.
    pub fields: BTreeMap<String, Field>,
    /// Type of the values under all other keys; none if there are no others.
    pub element: Option<Arc<Schema>>,
    /// The whole is one value.
    pub atomic: bool,
}

/// A declared field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its type.
    pub schema: Schema,
    /// Its default where it is the key of a list item.
    pub default: Option<Value>,
    /// How the server writes it down when it is empty.
    pub empty: Empty,
    /// How strategic merge treats it.
    pub strategic: Strategic,
    /// What Go calls its text type, where that has a name of its own; decoding errors say it.
    pub(crate) named: Option<&'static str>,
    /// The embedded Go struct that it comes from; decoding errors say that too.
    pub(crate) embedded: Option<&'static str>,
}

/// What the server stores for an empty or absent field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// As sent: a pointer, or a field of a custom resource.
    Kept,
    /// Never stored.
    Dropped,
    /// Always stored: the zero value, or null for a pointer.
    Written {
        /// The Go field is a pointer, list or map, so that its zero value is null.
        null: bool,
    },
}

/// The strategic merge marks of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strategic {
    /// Lists merge instead of being replaced.
    pub merge: bool,
    /// The key by which their items are told apart; none for single values.
    pub key: Option<String>,
    /// Fields of the struct that the patch does not name are dropped.
    pub retain_keys: bool,
}

/// A schema resolved for one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape<'a> {
    /// A single value.
    Scalar,
    /// A list.
    List(&'a List),
    /// A struct or map.
    Map(&'a Map),
}

static ANY_MAP: LazyLock<Map> = LazyLock::new(|| Map {
    fields: BTreeMap::new(),
    element: Some(Arc::new(Schema::Any)),
    atomic: false,
});
static ATOMIC_MAP: LazyLock<Map> = LazyLock::new(|| Map {
    fields: BTreeMap::new(),
    element: Some(Arc::new(Schema::AtomicAny)),
    atomic: true,
});
static ATOMIC_LIST: LazyLock<List> =
    LazyLock::new(|| List { item: Arc::new(Schema::AtomicAny), relation: Relation::Atomic });

impl Schema {
    /// A schema that accepts everything.
    #[must_use]
    pub fn any() -> Schema {
        Schema::Any
    }

    /// The schema itself, with a name looked up.
    #[must_use]
    pub fn resolve(&self) -> &Schema {
        match self {
            Schema::Named(name) => table::named(name).unwrap_or(&Schema::Any),
            other => other,
        }
    }

    /// How to walk a value of this type; an open type goes by the value.
    #[must_use]
    pub fn shape(&self, value: Option<&Value>) -> Shape<'_> {
        match self.resolve() {
            Schema::Scalar(_) => Shape::Scalar,
            Schema::List(list) => Shape::List(list),
            Schema::Map(map) => Shape::Map(map),
            open => match value {
                None | Some(Value::Null) if *open == Schema::Any => Shape::Map(&ANY_MAP),
                None | Some(Value::Null) => Shape::Map(&ATOMIC_MAP),
                Some(Value::Object(_)) if *open == Schema::Any => Shape::Map(&ANY_MAP),
                Some(Value::Object(_)) => Shape::Map(&ATOMIC_MAP),
                Some(Value::Array(_)) => Shape::List(&ATOMIC_LIST),
                Some(_) => Shape::Scalar,
            },
        }
    }

    /// The object as the server would hold it with nothing set: the structs that are always there.
    #[must_use]
    pub fn empty(&self) -> Value {
        let mut object = Value::Object(serde_json::Map::new());
        stored::settle(self, &mut object);
        object
    }

    /// Reads an object as the server's typed decoder does: drops unknown fields (reported with
    /// their paths), spells quantities and times canonically, drops and adds empty fields.
    ///
    /// # Errors
    ///
    /// The decoder's words for a value of the wrong type.
    pub fn decode(&self, object: &Value) -> Result<Decoded, String> {
        stored::decode(self, object)
    }

    /// What the server's converter says of the first value that does not fit; strategic patches go
    /// through it rather than through the decoder.
    #[must_use]
    pub fn misfit(&self, object: &Value) -> Option<String> {
        stored::misfit(self, object)
    }

    /// Brings an object into the form of [`Schema::decode`] in place, silently: unknown fields go,
    /// values of the wrong type stay.
    pub fn settle(&self, object: &mut Value) {
        stored::settle(self, object);
    }

    /// Drops fields the schema does not know; returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        stored::prune(self, object, "", &mut unknown);
        unknown
    }
}

impl Map {
    /// The type of the value under `key`.
    #[must_use]
    pub fn child(&self, key: &str) -> Option<&Schema> {
        self.fields.get(key).map(|field| &field.schema).or(self.element.as_deref())
    }
}

/// The schema of a built-in kind.
#[must_use]
pub fn built_in(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    let family = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) };
    let name = table::name(&format!("{family}.{version}.{kind}"))?;
    Some(Arc::new(Schema::Named(name)))
}

/// The schema of `metadata`, which built-in and custom kinds share.
#[must_use]
pub fn object_metadata() -> Option<Schema> {
    table::name("meta.v1.ObjectMeta").map(Schema::Named)
}

#[cfg(test)]
mod tests;
