//! The built-in types, read once from `kinds.txt`.
//!
//! Only reads the table. A line that cannot be read is a defect of this crate, hence `expect`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::{Empty, Field, List, Map, Relation, Scalar, Schema, Strategic};

const TEXT: &str = include_str!("kinds.txt");

static TYPES: LazyLock<BTreeMap<&'static str, Schema>> = LazyLock::new(|| {
    let mut types = BTreeMap::new();
    let mut open: Option<(&'static str, Map)> = None;
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        if let Some(row) = line.strip_prefix(' ') {
            let (name, field) = field(row);
            let (_, map) = open.as_mut().expect("kinds.txt starts with the name of a type");
            map.fields.insert(name.to_owned(), field);
        } else if let Some((name, map)) = open.replace(block(line)) {
            types.insert(name, Schema::Map(map));
        }
    }
    types.extend(open.map(|(name, map)| (name, Schema::Map(map))));
    types
});

/// The type called `name`.
pub(super) fn named(name: &str) -> Option<&'static Schema> {
    TYPES.get(name)
}

/// The table's own copy of a name, if there is such a type.
pub(super) fn name(name: &str) -> Option<&'static str> {
    TYPES.get_key_value(name).map(|(name, _)| *name)
}

fn block(line: &'static str) -> (&'static str, Map) {
    let (name, marks) = line.split_once(' ').unwrap_or((line, ""));
    (name, Map { atomic: marks == "atomic", ..Map::default() })
}

/// The marks behind a field's type.
#[derive(Default)]
struct Marks {
    atomic: bool,
    relation: Option<Relation>,
    default: Option<Value>,
    strategic: Strategic,
    omit_zero: bool,
    named: Option<&'static str>,
    embedded: Option<&'static str>,
}

fn marks(words: impl Iterator<Item = &'static str>) -> Marks {
    let mut marks = Marks::default();
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("atomic", _) => marks.atomic = true,
            ("set", _) => marks.relation = Some(Relation::Set),
            ("keys", keys) => {
                marks.relation = Some(Relation::Keys(keys.split(',').map(str::to_owned).collect()));
            }
            ("default", json) => marks.default = serde_json::from_str(json).ok(),
            ("merge", key) => {
                marks.strategic.merge = true;
                marks.strategic.key = (!key.is_empty()).then(|| key.to_owned());
            }
            ("retain", _) => marks.strategic.retain_keys = true,
            ("omitzero", _) => marks.omit_zero = true,
            ("go", name) => marks.named = Some(name),
            ("in", name) => marks.embedded = Some(name),
            _ => {}
        }
    }
    marks
}

fn field(row: &'static str) -> (&'static str, Field) {
    let mut words = row.split(' ');
    let name = words.next().expect("split gives at least one word");
    let spelled = words.next().expect("every row of kinds.txt has a type");
    let marks = marks(words);
    let kind = spelled.trim_end_matches('?');
    let omit = spelled.ends_with('?');
    let pointer = kind.starts_with('*');
    let time = matches!(kind, "time" | "microtime");
    let empty = match (pointer, omit) {
        (true, true) => Empty::Kept,
        (_, false) => Empty::Written { null: pointer || time || kind.starts_with(['[', '{']) },
        (false, true) if is_struct(kind) && !marks.omit_zero => Empty::Written { null: time },
        (false, true) => Empty::Dropped,
    };
    let schema = schema(kind.trim_start_matches('*'), marks.relation, marks.atomic);
    (
        name,
        Field {
            schema,
            default: marks.default,
            empty,
            strategic: marks.strategic,
            named: marks.named,
            embedded: marks.embedded,
        },
    )
}

/// Whether the Go type is a struct, which `omitempty` never leaves out.
fn is_struct(kind: &str) -> bool {
    kind.contains('.') && !kind.starts_with(['[', '{'])
        || matches!(kind, "quantity" | "intorstring" | "time" | "microtime")
}

fn schema(kind: &'static str, relation: Option<Relation>, atomic: bool) -> Schema {
    if let Some(item) = kind.strip_prefix("[]") {
        let item = Arc::new(schema(item.trim_start_matches('*'), None, false));
        return Schema::List(List { item, relation: relation.unwrap_or(Relation::Atomic) });
    }
    if let Some(element) = kind.strip_prefix("{}") {
        let element = Some(Arc::new(schema(element.trim_start_matches('*'), None, false)));
        return Schema::Map(Map { fields: BTreeMap::new(), element, atomic });
    }
    let scalar = match kind {
        "string" => Scalar::Text,
        "bytes" => Scalar::Bytes,
        "bool" => Scalar::Boolean,
        "int32" => Scalar::Integer(32),
        "int64" => Scalar::Integer(64),
        "uint8" => Scalar::Integer(8),
        "float64" => Scalar::Number,
        "quantity" => Scalar::Quantity,
        "intorstring" => Scalar::IntOrString,
        "time" => Scalar::Time,
        "microtime" => Scalar::MicroTime,
        "any" => return Schema::AtomicAny,
        name => return Schema::Named(name),
    };
    Schema::Scalar(scalar)
}
