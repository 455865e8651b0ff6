//! CEL rules of custom resources (`x-kubernetes-validations`).
//!
//! Programs are compiled once per CRD. Cost limits are not enforced.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::Value;

use super::{child, flag, old_item};
use crate::status::Cause;

mod convert;

/// The compiled programs of a schema, by their text.
#[derive(Debug, Default)]
pub(super) struct Rules {
    programs: BTreeMap<String, Program>,
}

impl Rules {
    pub(super) fn compile(schema: &Value) -> Rules {
        let mut rules = Rules::default();
        rules.collect(schema);
        rules
    }

    fn collect(&mut self, schema: &Value) {
        match schema {
            Value::Object(object) => {
                for rule in of(schema) {
                    for field in ["rule", "messageExpression"] {
                        let text = rule[field].as_str().unwrap_or_default().trim();
                        if let Ok(program) = Program::compile(text) {
                            self.programs.insert(text.to_owned(), program);
                        }
                    }
                }
                object.values().for_each(|value| self.collect(value));
            }
            Value::Array(items) => items.iter().for_each(|value| self.collect(value)),
            _ => {}
        }
    }

    /// Evaluates every rule over the object.
    pub(super) fn check(&self, schema: &Value, new: &Value, old: Option<&Value>) -> Vec<Cause> {
        if self.programs.is_empty() {
            return Vec::new();
        }
        let context = Context::default().with_all();
        let mut pass = Pass { rules: self, context: &context, causes: Vec::new() };
        pass.visit(schema, new, old, "", true);
        pass.causes
    }
}

/// The rules of one schema node.
fn of(schema: &Value) -> &[Value] {
    schema["x-kubernetes-validations"].as_array().map_or(&[], Vec::as_slice)
}

struct Pass<'a> {
    rules: &'a Rules,
    context: &'a Context<'a>,
    causes: Vec<Cause>,
}

impl Pass<'_> {
    fn visit(&mut self, schema: &Value, new: &Value, old: Option<&Value>, path: &str, root: bool) {
        if new.is_null() {
            return;
        }
        self.node(schema, new, old.filter(|old| !old.is_null()), path, root);
        match new {
            Value::Object(object) => {
                for (key, value) in object {
                    let declared = schema["properties"].get(key.as_str()).is_some();
                    let Some(schema) = child(schema, key) else { continue };
                    let here = match (path, declared) {
                        ("", _) => key.clone(),
                        (path, true) => format!("{path}.{key}"),
                        (path, false) => format!("{path}[{key}]"),
                    };
                    let resource = flag(schema, "x-kubernetes-embedded-resource");
                    self.visit(schema, value, old.and_then(|old| old.get(key)), &here, resource);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let before = old_item(schema, item, old);
                    self.visit(&schema["items"], item, before, &format!("{path}[{index}]"), false);
                }
            }
            _ => {}
        }
    }

    fn node(&mut self, schema: &Value, new: &Value, old: Option<&Value>, path: &str, root: bool) {
        let rules = of(schema);
        if rules.is_empty() {
            return;
        }
        let mut scope = self.context.new_inner_scope();
        scope.add_variable_from_value("self", convert::value(schema, new, root));
        let before = old.map(|old| convert::value(schema, old, root));
        for rule in rules {
            let text = rule["rule"].as_str().unwrap_or_default().trim();
            let optional = flag(rule, "optionalOldSelf");
            let transition = text.contains("oldSelf");
            // What did not change is not held against an update, unless the rule is about change.
            if (transition && !optional && before.is_none()) || (!transition && old == Some(new)) {
                continue;
            }
            let mut inner = scope.new_inner_scope();
            let old_self = match &before {
                Some(before) if optional => convert::optional(Some(before.clone())),
                Some(before) => before.clone(),
                None => convert::optional(None),
            };
            inner.add_variable_from_value("oldSelf", old_self);
            self.rule(rule, text, new, path, &inner);
        }
    }

    fn rule(&mut self, rule: &Value, text: &str, new: &Value, path: &str, scope: &Context<'_>) {
        let at = match rule["fieldPath"].as_str() {
            Some(below) if path.is_empty() => below.trim_start_matches('.').to_owned(),
            Some(below) => format!("{path}{below}"),
            None if path.is_empty() => "<nil>".to_owned(),
            None => path.to_owned(),
        };
        let outcome = match self.rules.programs.get(text) {
            Some(program) => program.execute(scope).map_err(|error| error.to_string()),
            None => Err("the rule does not compile".to_owned()),
        };
        let shown = match new {
            Value::Object(_) | Value::Array(_) => String::new(),
            single => format!("{single}: "),
        };
        match outcome {
            Ok(Cel::Bool(true)) => {}
            Ok(_) => {
                let message = self.message(rule, text, scope);
                let (reason, message) = match rule["reason"].as_str() {
                    Some("FieldValueForbidden") => {
                        ("FieldValueForbidden", format!("Forbidden: {message}"))
                    }
                    Some("FieldValueRequired") => {
                        ("FieldValueRequired", format!("Required value: {message}"))
                    }
                    Some("FieldValueDuplicate") => {
                        ("FieldValueDuplicate", format!("Duplicate value: {new}"))
                    }
                    _ => ("FieldValueInvalid", format!("Invalid value: {shown}{message}")),
                };
                self.causes.push(Cause::new(reason, at, message));
            }
            Err(error) => {
                let kind = super::values::kind_of(new);
                let message = format!("Invalid value: \"{kind}\": {error} evaluating rule: {text}");
                self.causes.push(Cause::new("FieldValueInvalid", at, message));
            }
        }
    }

    fn message(&self, rule: &Value, text: &str, scope: &Context<'_>) -> String {
        let expression = rule["messageExpression"].as_str().unwrap_or_default().trim();
        if let Some(program) = self.rules.programs.get(expression)
            && let Ok(Cel::String(words)) = program.execute(scope)
        {
            let words = Arc::unwrap_or_clone(words);
            if !words.trim().is_empty() && !words.contains('\n') {
                return words.trim().to_owned();
            }
        }
        match rule["message"].as_str() {
            Some(message) if !message.is_empty() => message.trim().to_owned(),
            _ => format!("failed rule: {text}"),
        }
    }
}

/// Why a rule can't be compiled for values of this schema; none if it can.
pub(super) fn broken(schema: &Value, text: &str) -> Option<String> {
    if let Err(error) = Program::compile(text) {
        return Some(error.to_string());
    }
    unknown_field(schema, text).map(|(at, field)| {
        let dots = ".".repeat(at);
        format!("ERROR: <input>:1:{}: undefined field '{field}'\n | {text}\n | {dots}^", at + 1)
    })
}

/// The first field that a rule reads from `self` and that the schema does not declare, with the
/// place of its dot. The only part of the server's type check that is done here.
fn unknown_field<'a>(schema: &Value, text: &'a str) -> Option<(usize, &'a str)> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for (start, _) in text.match_indices("self.") {
        let whole = !text[..start].ends_with(|c: char| word(c) || c == '.');
        let mut at = start + "self".len();
        let mut here = schema;
        while whole && text[at..].starts_with('.') {
            let rest = &text[at + 1..];
            let field = &rest[..rest.find(|c| !word(c)).unwrap_or(rest.len())];
            let closed = here["type"] == "object"
                && here["properties"].is_object()
                && !flag(here, "x-kubernetes-preserve-unknown-fields")
                && !flag(here, "x-kubernetes-embedded-resource");
            // Quoted text, calls, and names that need escaping are none of this check's business.
            if !closed || rest[field.len()..].starts_with('(') || field.contains("__") {
                break;
            }
            match here["properties"].get(field) {
                Some(next) => here = next,
                None if ["metadata", "apiVersion", "kind"].contains(&field) => break,
                None => return Some((at, field)),
            }
            at += 1 + field.len();
        }
    }
    None
}
