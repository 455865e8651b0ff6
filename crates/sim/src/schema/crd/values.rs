//! Validation of values against a schema: types, bounds, enums, formats, combinations.
//!
//! Order and wording are those of `kube-openapi`'s validator, whose messages users see.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{child, flag, old_item};
use crate::status::Cause;

mod format;
mod number;

/// Patterns of a schema, compiled once.
#[derive(Debug, Default)]
pub(super) struct Patterns(BTreeMap<String, regex::Regex>);

impl Patterns {
    pub(super) fn compile(schema: &Value) -> Patterns {
        let mut patterns = Patterns::default();
        patterns.collect(schema);
        patterns
    }

    fn collect(&mut self, schema: &Value) {
        match schema {
            Value::Object(object) => {
                if let Some(pattern) = schema["pattern"].as_str()
                    && let Ok(regex) = regex::Regex::new(pattern)
                {
                    self.0.insert(pattern.to_owned(), regex);
                }
                object.values().for_each(|value| self.collect(value));
            }
            Value::Array(items) => items.iter().for_each(|value| self.collect(value)),
            _ => {}
        }
    }

    /// Whether `text` matches; a pattern that can't be compiled matches nothing.
    fn matches(&self, pattern: &str, text: &str) -> bool {
        self.0.get(pattern).is_some_and(|regex| regex.is_match(text))
    }
}

/// Problems, and how many checks were made, by which the nearest alternative is chosen.
#[derive(Default)]
struct Outcome {
    causes: Vec<Cause>,
    checks: usize,
}

impl Outcome {
    fn merge(&mut self, other: Outcome) {
        self.checks += other.checks;
        for cause in other.causes {
            self.add(cause);
        }
    }

    fn add(&mut self, cause: Cause) {
        if !self.causes.contains(&cause) {
            self.causes.push(cause);
        }
    }
}

/// Checks a whole object; what `old` has unchanged is not checked again.
pub(super) fn check(
    schema: &Value,
    new: &Value,
    old: Option<&Value>,
    patterns: &Patterns,
) -> Vec<Cause> {
    Checker { patterns, prefix: "" }.value(schema, new, old, "").causes
}

/// Checks a part of an object that lies at `prefix`: messages name fields from that part on.
pub(super) fn check_part(
    schema: &Value,
    new: &Value,
    old: Option<&Value>,
    patterns: &Patterns,
    prefix: &str,
) -> Vec<Cause> {
    Checker { patterns, prefix }.value(schema, new, old, "").causes
}

struct Checker<'a> {
    patterns: &'a Patterns,
    /// Where the checked value lies in the object.
    prefix: &'a str,
}

impl Checker<'_> {
    fn cause(&self, reason: &'static str, path: &str, message: String) -> Cause {
        let path = path.trim_start_matches('.');
        let field = match (self.prefix, path) {
            ("", "") => "<nil>".to_owned(),
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        };
        Cause::new(reason, field, message)
    }

    /// A problem with the value as such.
    fn invalid(&self, path: &str, value: &Value, text: &str) -> Cause {
        let message = format!("Invalid value: {value}: {path} in body {text}");
        self.cause("FieldValueInvalid", path, message)
    }

    /// A problem that the validator reports without naming a field.
    fn general(&self, text: String) -> Cause {
        let field = if self.prefix.is_empty() { "<nil>" } else { self.prefix };
        Cause::new("FieldValueInvalid", field, format!("Invalid value: \"\": {text}"))
    }

    fn value(&self, schema: &Value, new: &Value, old: Option<&Value>, path: &str) -> Outcome {
        let mut outcome = Outcome::default();
        if old == Some(new) {
            return outcome;
        }
        self.kind(schema, new, path, &mut outcome);
        if new.is_null() {
            self.options(schema, new, path, &mut outcome);
            return outcome;
        }
        self.combinations(schema, new, path, &mut outcome);
        match new {
            Value::String(text) => self.text(schema, text, path, &mut outcome),
            Value::Number(_) => number::check(self, schema, new, path, &mut outcome),
            Value::Array(items) => self.items(schema, items, old, path, &mut outcome),
            _ => {}
        }
        self.options(schema, new, path, &mut outcome);
        if new.is_object() {
            self.fields(schema, new, old, path, &mut outcome);
        }
        outcome.checks += 3;
        outcome
    }

    fn kind(&self, schema: &Value, value: &Value, path: &str, outcome: &mut Outcome) {
        let wanted: Vec<&str> = if flag(schema, "x-kubernetes-int-or-string") {
            vec!["integer", "string"]
        } else {
            schema["type"].as_str().into_iter().collect()
        };
        outcome.checks += usize::from(!wanted.is_empty());
        let (found, precise) = number::kind(value);
        let nothing = value.is_null() && (flag(schema, "nullable") || wanted.is_empty());
        let fits = wanted
            .iter()
            .any(|wanted| *wanted == found || (*wanted == "number" && found == "integer"));
        let format = schema["format"].as_str().filter(|format| formatted(&wanted, format));
        let flat = !value.is_string() && !value.is_array() && !value.is_null();
        // A text or list where some format is wanted is left to the check of that format.
        let left = format.is_some()
            && !flat
            && !value.is_null()
            && !wanted.iter().any(|wanted| matches!(*wanted, "number" | "integer"));
        if wanted.is_empty() || nothing || fits || left {
            return;
        }
        let (wanted, found) = match format.filter(|_| flat) {
            Some(format) => (format.to_owned(), precise),
            None => (wanted.join(","), found),
        };
        let message = format!(
            "Invalid value: \"{found}\": {path} in body must be of type {wanted}: \"{found}\""
        );
        outcome.add(self.cause("FieldValueTypeInvalid", path, message));
    }

    fn options(&self, schema: &Value, value: &Value, path: &str, outcome: &mut Outcome) {
        let Some(options) = schema["enum"].as_array() else { return };
        if options.contains(value) || (value.is_null() && flag(schema, "nullable")) {
            return;
        }
        let quoted: Vec<String> = options
            .iter()
            .map(|option| match option {
                Value::String(text) => format!("{text:?}"),
                other => format!("{:?}", other.to_string()),
            })
            .collect();
        let message =
            format!("Unsupported value: {value}: supported values: {}", quoted.join(", "));
        outcome.add(self.cause("FieldValueNotSupported", path, message));
    }

    fn text(&self, schema: &Value, text: &str, path: &str, outcome: &mut Outcome) {
        let length = text.chars().count() as u64;
        let value = Value::from(text);
        let pattern = schema["pattern"].as_str();
        let numeric = flag(schema, "x-kubernetes-int-or-string") || schema["type"] == "string";
        outcome.checks += usize::from(numeric);
        if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
            let message = format!("Too long: may not be more than {most} bytes");
            outcome.add(self.cause("FieldValueTooLong", path, message));
        } else if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
            outcome.add(self.invalid(
                path,
                &value,
                &format!("should be at least {least} chars long"),
            ));
        } else if let Some(pattern) =
            pattern.filter(|pattern| !self.patterns.matches(pattern, text))
        {
            outcome.add(self.invalid(path, &value, &format!("should match '{pattern}'")));
        }
        if let Some(name) = schema["format"].as_str().filter(|name| !format::matches(name, text)) {
            let message =
                format!("Invalid value: {value}: {path} in body must be of type {name}: {value}");
            outcome.add(self.cause("FieldValueTypeInvalid", path, message));
        }
    }

    fn items(
        &self,
        schema: &Value,
        items: &[Value],
        old: Option<&Value>,
        path: &str,
        outcome: &mut Outcome,
    ) {
        if schema["items"].is_object() {
            for (index, item) in items.iter().enumerate() {
                let before = old_item(schema, item, old);
                let here = format!("{path}[{index}]");
                outcome.merge(self.value(&schema["items"], item, before, &here));
            }
        }
        let count = items.len() as u64;
        if let Some(least) = schema["minItems"].as_u64().filter(|least| count < *least) {
            let text = format!("should have at least {least} items");
            outcome.add(self.invalid(path, &Value::from(count), &text));
        }
        if let Some(most) = schema["maxItems"].as_u64().filter(|most| count > *most) {
            let message = format!("Too many: {count}: must have at most {most} items");
            outcome.add(self.cause("FieldValueTooMany", path, message));
        }
    }

    fn fields(
        &self,
        schema: &Value,
        value: &Value,
        old: Option<&Value>,
        path: &str,
        outcome: &mut Outcome,
    ) {
        let Some(object) = value.as_object() else { return };
        let count = object.len() as u64;
        if let Some(least) = schema["minProperties"].as_u64().filter(|least| count < *least) {
            let text = format!("should have at least {least} properties");
            outcome.add(self.invalid(path, &Value::from(count), &text));
        }
        if let Some(most) = schema["maxProperties"].as_u64().filter(|most| count > *most) {
            let message = format!("Too many: {count}: must have at most {most} items");
            outcome.add(self.cause("FieldValueTooMany", path, message));
        }
        for (key, value) in object {
            if let Some(schema) = child(schema, key) {
                let before = old.and_then(|old| old.get(key));
                let here = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                outcome.merge(self.value(schema, value, before, &here));
            }
        }
        let required =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in required.filter(|name| !object.contains_key(*name)) {
            let here = format!("{path}.{name}");
            outcome.add(self.cause("FieldValueRequired", &here, "Required value".to_owned()));
        }
    }

    fn combinations(&self, schema: &Value, value: &Value, path: &str, outcome: &mut Outcome) {
        let branches = |name: &str| -> Vec<Outcome> {
            let schemas = schema[name].as_array().map_or(&[][..], Vec::as_slice);
            schemas.iter().map(|schema| self.value(schema, value, None, path)).collect()
        };
        let any = branches("anyOf");
        if !any.is_empty() && !any.iter().any(|branch| branch.causes.is_empty()) {
            let text = format!("\"{path}\" must validate at least one schema (anyOf)");
            outcome.add(self.general(text));
            outcome.merge(nearest(any));
        }
        let one = branches("oneOf");
        let valid = one.iter().filter(|branch| branch.causes.is_empty()).count();
        if !one.is_empty() && valid != 1 {
            let found = match valid {
                0 => "Found none valid".to_owned(),
                count => format!("Found {count} valid alternatives"),
            };
            let text = format!("\"{path}\" must validate one and only one schema (oneOf). {found}");
            outcome.add(self.general(text));
            if valid == 0 {
                outcome.merge(nearest(one));
            }
        }
        let all = branches("allOf");
        let (count, failed) =
            (all.len(), all.iter().filter(|branch| !branch.causes.is_empty()).count());
        all.into_iter().for_each(|branch| outcome.merge(branch));
        if failed > 0 {
            let none = if failed == count { ". None validated" } else { "" };
            outcome.add(
                self.general(format!("\"{path}\" must validate all the schemas (allOf){none}")),
            );
        }
        let not = &schema["not"];
        if not.is_object() && self.value(not, value, None, path).causes.is_empty() {
            outcome.add(self.general(format!("\"{path}\" must not validate the schema (not)")));
        }
    }
}

/// Whether a text format, written without hyphens, means anything to the server.
pub(super) fn knows_format(format: &str) -> bool {
    format::KNOWN.contains(&format)
}

/// The JSON type of a value, as messages name it.
pub(super) fn kind_of(value: &Value) -> &'static str {
    number::kind(value).0
}

/// Whether the server minds this format for these types.
fn formatted(types: &[&str], format: &str) -> bool {
    match types {
        ["string"] => knows_format(&format.replace('-', "")),
        ["integer"] => matches!(format, "int32" | "int64"),
        ["number"] => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// The failed alternative that got furthest.
fn nearest(branches: Vec<Outcome>) -> Outcome {
    let mut best = Outcome::default();
    for (index, branch) in branches.into_iter().enumerate() {
        if index == 0 || branch.checks > best.checks {
            best = branch;
        }
    }
    best
}
