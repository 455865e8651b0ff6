//! Objects as the server stores them: a round trip through its typed structs.
//!
//! Unknown fields are dropped, empty ones dropped or written as the struct tags say, quantities and
//! times spelled canonically. Decides nothing about validity beyond the type of each value.

use serde_json::{Map as Object, Value, json};

use super::{Empty, Field, Map, Scalar, Schema};
use crate::quantity::Quantity;

mod words;

use words::{
    LAYOUT, MICRO_LAYOUT, bad_time, go_name, go_type, not_microseconds, scalar_name, unconverted,
};

/// A decoded object.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object as stored.
    pub object: Value,
    /// Paths of the fields that were dropped because no such field exists, for example
    /// `spec.template.spec.containers[0].foo`.
    pub unknown: Vec<String>,
}

/// Where the reader is, in the two spellings that messages need.
#[derive(Clone, Default)]
struct Place {
    /// With list indices: `spec.containers[0].image`.
    path: String,
    /// As Go's decoder names it: `spec.containers.image`.
    plain: String,
    /// Name of the struct that holds the field.
    holder: String,
    /// Name of the field's text type, where it has one.
    named: Option<&'static str>,
}

impl Place {
    fn field(&self, name: &str, holder: &str) -> Place {
        let join = |before: &str| {
            if before.is_empty() { name.to_owned() } else { format!("{before}.{name}") }
        };
        Place {
            path: join(&self.path),
            plain: join(&self.plain),
            holder: holder.to_owned(),
            named: None,
        }
    }

    fn item(&self, index: usize) -> Place {
        Place { path: format!("{}[{index}]", self.path), ..self.clone() }
    }
}

/// The state of one pass over an object.
#[derive(Default)]
struct Reader {
    unknown: Vec<String>,
    error: Option<String>,
    /// Speak as the server's converter instead of its decoder.
    converts: bool,
}

/// See [`Schema::misfit`].
pub(super) fn misfit(schema: &Schema, object: &Value) -> Option<String> {
    let mut reader = Reader { converts: true, ..Reader::default() };
    reader.read(schema, object.clone(), &Place::default());
    reader.error
}

/// See [`Schema::decode`].
pub(super) fn decode(schema: &Schema, object: &Value) -> Result<Decoded, String> {
    let mut reader = Reader::default();
    let object = reader.read(schema, object.clone(), &Place::default());
    match reader.error {
        Some(error) => Err(error),
        None => Ok(Decoded { object, unknown: reader.unknown }),
    }
}

/// Normalises in place; values of the wrong type stay as they are.
pub(super) fn settle(schema: &Schema, object: &mut Value) {
    let sent = object.take();
    *object = Reader::default().read(schema, sent, &Place::default());
}

/// See [`Schema::prune`].
pub(super) fn prune(schema: &Schema, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
    match (schema.resolve(), value) {
        (Schema::Map(map), Value::Object(object)) => {
            object.retain(|key, _| {
                let known = map.child(key).is_some();
                if !known {
                    unknown.push(join(path, key));
                }
                known
            });
            for (key, child) in object.iter_mut() {
                if let Some(schema) = map.child(key) {
                    prune(schema, child, &join(path, key), unknown);
                }
            }
        }
        (Schema::List(list), Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                prune(&list.item, item, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl Reader {
    fn read(&mut self, schema: &Schema, value: Value, place: &Place) -> Value {
        match (schema.resolve(), value) {
            (Schema::Scalar(scalar), value) => self.scalar(*scalar, value, place),
            (Schema::Map(map), Value::Object(object)) => self.map(schema, map, object, place),
            (Schema::Map(map), Value::Null) if !map.fields.is_empty() => {
                self.map(schema, map, Object::new(), place)
            }
            (Schema::List(list), Value::Array(items)) => Value::Array(
                items
                    .into_iter()
                    .enumerate()
                    .map(|(index, item)| self.read(&list.item, item, &place.item(index)))
                    .collect(),
            ),
            (Schema::Map(_) | Schema::List(_), Value::Null) => Value::Null,
            (Schema::Map(_) | Schema::List(_), wrong) => {
                self.wrong(&wrong, &go_type(schema), place);
                wrong
            }
            (_, value) => value,
        }
    }

    fn map(
        &mut self,
        schema: &Schema,
        map: &Map,
        object: Object<String, Value>,
        place: &Place,
    ) -> Value {
        let holder = go_name(schema);
        let mut stored = Object::new();
        for (key, value) in object {
            let mut inner = place.field(&key, &holder);
            match map.fields.get(&key) {
                Some(field) => {
                    inner.named = field.named;
                    if let Some(embedded) = field.embedded {
                        inner.plain = place.field(&format!("{embedded}.{key}"), "").plain;
                    }
                    if let Some(value) = self.field(field, value, &inner) {
                        stored.insert(key, value);
                    }
                }
                None => match &map.element {
                    Some(element) => {
                        // Go names the field that holds the map, never the key.
                        let at = Place { path: inner.path, ..place.clone() };
                        let value = match **element {
                            Schema::Scalar(Scalar::Quantity) => self.quantity(value, true),
                            _ => self.read(element, value, &at),
                        };
                        stored.insert(key, value);
                    }
                    None => self.unknown.push(inner.path),
                },
            }
        }
        for (name, field) in &map.fields {
            if let Empty::Written { null } = field.empty
                && !stored.contains_key(name)
            {
                stored.insert(name.clone(), if null { Value::Null } else { zero(&field.schema) });
            }
        }
        Value::Object(stored)
    }

    /// The stored value of a field; none if it is left out.
    fn field(&mut self, field: &Field, value: Value, place: &Place) -> Option<Value> {
        if value.is_null() {
            return None;
        }
        let value = self.read(&field.schema, value, place);
        let left_out = match field.empty {
            Empty::Kept | Empty::Written { .. } => false,
            Empty::Dropped => is_zero(&value),
        };
        (!left_out).then_some(value)
    }

    fn scalar(&mut self, scalar: Scalar, value: Value, place: &Place) -> Value {
        if value.is_null() {
            return zero(&Schema::Scalar(scalar));
        }
        match scalar {
            Scalar::Text if value.is_string() => value,
            Scalar::Bytes if value.is_string() => self.bytes(value),
            Scalar::Boolean if value.is_boolean() => value,
            Scalar::Integer(_) if value.is_i64() || value.is_u64() => value,
            Scalar::Number if value.is_number() => value,
            Scalar::IntOrString if value.is_string() || value.is_i64() => value,
            Scalar::Untyped => value,
            Scalar::Quantity => self.quantity(value, false),
            Scalar::Time => self.time(value, false, place),
            Scalar::MicroTime => self.time(value, true, place),
            _ => {
                let wanted = match scalar {
                    Scalar::IntOrString => "int32",
                    other => scalar_name(other),
                };
                self.wrong(&value, wanted, place);
                value
            }
        }
    }

    fn bytes(&mut self, value: Value) -> Value {
        use base64::Engine as _;
        let text = value.as_str().unwrap_or_default();
        if let Err(error) = base64::engine::general_purpose::STANDARD.decode(text) {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) => at,
                base64::DecodeError::InvalidLastSymbol(at, _) => at + 1,
                base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
                    text.len() / 4 * 4
                }
            };
            self.refuse(format!("illegal base64 data at input byte {at}"));
        }
        value
    }

    /// `listed` amounts stand in a list of resources and are kept in thousandths.
    fn quantity(&mut self, value: Value, listed: bool) -> Value {
        if value.is_null() {
            return json!("0");
        }
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match Quantity::parse(&text) {
            Ok(quantity) if listed => Value::String(quantity.in_thousandths().to_string()),
            Ok(quantity) => Value::String(quantity.to_string()),
            Err(error) => {
                self.refuse(error.to_string());
                value
            }
        }
    }

    fn time(&mut self, value: Value, micro: bool, place: &Place) -> Value {
        let Some(text) = value.as_str() else {
            self.wrong(&value, "string", place);
            return value;
        };
        if micro && let Some(rest) = not_microseconds(text) {
            self.refuse(bad_time(text, MICRO_LAYOUT, rest, ".000000"));
            return value;
        }
        match text.parse::<jiff::Timestamp>() {
            Ok(time) if micro => json!(format!("{time:.6}")),
            Ok(time) => json!(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            Err(_) => {
                let layout = if micro { MICRO_LAYOUT } else { LAYOUT };
                let (rest, wanted) = match text.get(10..) {
                    Some(rest) if text.as_bytes()[4] == b'-' => (rest, "T"),
                    _ => (text, "2006"),
                };
                self.refuse(bad_time(text, layout, rest, wanted));
                value
            }
        }
    }

    fn wrong(&mut self, value: &Value, wanted: &str, place: &Place) {
        if self.converts {
            return self.refuse(unconverted(value, wanted));
        }
        let wanted = match (place.named, wanted) {
            (Some(name), "string") => name.to_owned(),
            (Some(name), "[]string") => format!("[]{name}"),
            (_, other) => other.to_owned(),
        };
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if number.is_f64() => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        self.refuse(format!(
            "json: cannot unmarshal {found} into Go struct field {}.{} of type {wanted}",
            place.holder, place.plain
        ));
    }

    fn refuse(&mut self, error: String) {
        self.error.get_or_insert(error);
    }
}

/// The value Go writes for a field that was never set.
fn zero(schema: &Schema) -> Value {
    match schema.resolve() {
        Schema::Scalar(scalar) => match scalar {
            Scalar::Text | Scalar::Bytes => json!(""),
            Scalar::Integer(_) | Scalar::Number | Scalar::IntOrString => json!(0),
            Scalar::Boolean => json!(false),
            Scalar::Quantity => json!("0"),
            Scalar::Time | Scalar::MicroTime | Scalar::Untyped => Value::Null,
        },
        Schema::Map(map) if !map.fields.is_empty() => {
            Reader::default().map(schema, map, Object::new(), &Place::default())
        }
        _ => Value::Null,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
    }
}
