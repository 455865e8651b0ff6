//! Numbers: their kind and their bounds.

use serde_json::Value;

use super::{Checker, Outcome};
use crate::schema::crd::flag;

/// The JSON type of a value and the server's own name for its precision. A number without a
/// fraction is an integer unless it is too large for one.
pub(super) fn kind(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() != 0.0 => ("number", "float64"),
            _ if number.as_i64().is_none() && number.is_u64() => ("number", "float64"),
            _ => ("integer", "int64"),
        },
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Checks a number against its schema.
pub(super) fn check(
    checker: &Checker<'_>,
    schema: &Value,
    value: &Value,
    path: &str,
    outcome: &mut Outcome,
) {
    let number = value.as_f64().unwrap_or(0.0);
    let integer = schema["type"] == "integer" && !flag(schema, "x-kubernetes-int-or-string");
    outcome.checks += 1;
    if integer {
        let format = schema["format"].as_str().unwrap_or_default();
        let fits = match (value.as_i64(), format) {
            (None, _) => false,
            (Some(whole), "int32") => i32::try_from(whole).is_ok(),
            (Some(_), _) => true,
        };
        if !fits {
            let format = match format {
                "int32" | "int64" => format!("with format {format}"),
                _ => "(default format)".to_owned(),
            };
            let text = format!("Checked value must be of type integer {format} in {path}");
            outcome.add(checker.general(text));
        }
    }
    bounds(checker, schema, value, path, outcome, number);
}

fn bounds(
    checker: &Checker<'_>,
    schema: &Value,
    value: &Value,
    path: &str,
    outcome: &mut Outcome,
    number: f64,
) {
    if let Some(factor) = schema["multipleOf"].as_f64() {
        multiple(checker, value, path, outcome, factor);
    }
    if let Some(most) = schema["maximum"].as_f64() {
        if flag(schema, "exclusiveMaximum") {
            if number >= most {
                outcome.add(checker.invalid(path, value, &format!("should be less than {most}")));
            }
        } else if number > most {
            let text = format!("should be less than or equal to {most}");
            outcome.add(checker.invalid(path, value, &text));
        }
    }
    if let Some(least) = schema["minimum"].as_f64() {
        if flag(schema, "exclusiveMinimum") {
            if number <= least {
                outcome.add(checker.invalid(
                    path,
                    value,
                    &format!("should be greater than {least}"),
                ));
            }
        } else if number < least {
            let text = format!("should be greater than or equal to {least}");
            outcome.add(checker.invalid(path, value, &text));
        }
    }
}

/// The validator compares whole numbers with a whole factor, which a fraction is not.
fn multiple(checker: &Checker<'_>, value: &Value, path: &str, outcome: &mut Outcome, factor: f64) {
    let number = value.as_f64().unwrap_or(0.0);
    let factor = if value.is_f64() { factor } else { factor.trunc() };
    if factor <= 0.0 {
        let message = format!(
            "Invalid value: {factor}: factor MultipleOf declared for {path} must be positive: {factor}"
        );
        outcome.add(checker.cause("FieldValueInvalid", path, message));
    } else if (number / factor).fract() != 0.0 {
        outcome.add(checker.invalid(path, value, &format!("should be a multiple of {factor}")));
    }
}
