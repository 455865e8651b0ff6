//! JSON values as CEL sees them, by their schema.
//!
//! Names that CEL can't spell are escaped as the server escapes them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::objects::{Key, Map as CelMap};
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::Value;

use super::super::{child, flag};

/// Words that CEL keeps for itself.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A value by its schema. Of a whole resource, only fields that the schema declares and the
/// identifying metadata are visible; unknown fields never are.
pub(super) fn value(schema: &Value, json: &Value, resource: bool) -> Cel {
    match json {
        Value::Null => Cel::Null,
        Value::Bool(set) => Cel::Bool(*set),
        Value::Number(number) => match number.as_i64() {
            Some(whole) if schema["type"] != "number" => Cel::Int(whole),
            _ => Cel::Float(number.as_f64().unwrap_or(0.0)),
        },
        Value::String(text) => string(schema, text),
        Value::Array(items) => Cel::List(Arc::new(
            items.iter().map(|item| value(&schema["items"], item, false)).collect(),
        )),
        Value::Object(object) => {
            let mut fields: HashMap<Key, Cel> = HashMap::new();
            for (key, json) in object {
                if resource && key == "metadata" {
                    fields.insert(name(key), metadata(json));
                } else if resource && (key == "apiVersion" || key == "kind") {
                    fields.insert(name(key), value(&Value::Null, json, false));
                } else if let Some(declared) = schema["properties"].get(key.as_str()) {
                    let embedded = flag(declared, "x-kubernetes-embedded-resource");
                    fields.insert(name(&escaped(key)), value(declared, json, embedded));
                } else if let Some(extra) = child(schema, key) {
                    fields.insert(name(key), value(extra, json, false));
                }
            }
            Cel::Map(CelMap { map: Arc::new(fields) })
        }
    }
}

/// An optional value, as `oldSelf` is where a rule asks for it.
pub(super) fn optional(inner: Option<Cel>) -> Cel {
    match inner {
        Some(inner) => evaluate("optional.of(x)", inner),
        None => evaluate("optional.none()", Cel::Null),
    }
}

thread_local! {
    /// The few programs that make values which can't be made otherwise, compiled once a thread.
    static MAKERS: RefCell<HashMap<&'static str, Option<Program>>> = RefCell::default();
}

/// Evaluates `text` with `x` bound.
fn evaluate(text: &'static str, x: Cel) -> Cel {
    let mut context = Context::default();
    if text.starts_with("base64") {
        context = context.with_all();
    }
    context.add_variable_from_value("x", x);
    MAKERS.with_borrow_mut(|makers| {
        let program = makers.entry(text).or_insert_with(|| Program::compile(text).ok());
        program.as_ref().and_then(|program| program.execute(&context).ok()).unwrap_or(Cel::Null)
    })
}

fn string(schema: &Value, text: &str) -> Cel {
    let plain = Cel::String(Arc::new(text.to_owned()));
    match schema["format"].as_str() {
        Some("date-time") => evaluate("timestamp(x)", plain),
        Some("date") => evaluate("timestamp(x + 'T00:00:00Z')", plain),
        Some("duration") => evaluate("duration(x)", plain),
        Some("byte") => evaluate("base64.decode(x)", plain),
        _ => plain,
    }
}

fn metadata(json: &Value) -> Cel {
    let fields: HashMap<Key, Cel> = ["name", "generateName"]
        .iter()
        .filter_map(|field| Some((name(field), value(&Value::Null, json.get(field)?, false))))
        .collect();
    Cel::Map(CelMap { map: Arc::new(fields) })
}

fn name(text: &str) -> Key {
    Key::String(Arc::new(text.to_owned()))
}

fn escaped(text: &str) -> String {
    if RESERVED.contains(&text) {
        return format!("__{text}__");
    }
    text.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
