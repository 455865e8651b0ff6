//! JSON patch operations one by one.
//!
//! Follows `evanphx/json-patch` v4 rather than the RFC where the two differ, since that is what
//! clients of kube-apiserver meet.

use serde_json::Value;

const MISSING: &str = "missing value";

/// See [`super::json`].
pub(super) fn apply(live: &Value, operations: &Value) -> Result<Value, String> {
    let mut document = live.clone();
    let operations = operations.as_array().ok_or("a JSON patch is a list of operations")?;
    for operation in operations {
        step(&mut document, operation)?;
    }
    Ok(document)
}

fn step(document: &mut Value, operation: &Value) -> Result<(), String> {
    let kind = operation["op"].as_str().unwrap_or("unknown");
    let text = |field: &str| {
        operation[field]
            .as_str()
            .ok_or_else(|| format!("{kind} operation failed to decode {field}: {MISSING}"))
    };
    let value = operation.get("value").cloned().unwrap_or(Value::Null);
    match kind {
        "add" => add(document, kind, text("path")?, value),
        "remove" => remove(document, kind, text("path")?).map(drop),
        "replace" => replace(document, text("path")?, value),
        "test" => test(document, text("path")?, &value),
        "move" => {
            let moved = remove(document, kind, text("from")?)?;
            add(document, kind, text("path")?, moved)
        }
        "copy" => {
            let from = text("from")?;
            let (holder, key) = find(document, from).ok_or_else(|| {
                format!(
                    "copy operation does not apply: doc is missing from path: {from}: {MISSING}"
                )
            })?;
            let copied = get(holder, &key)?.cloned().unwrap_or(Value::Null);
            add(document, kind, text("path")?, copied)
        }
        other => Err(format!("Unexpected kind: {other}")),
    }
}

/// The container that holds the last step of `path`, and that step.
fn find<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let mut steps = path.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
    let mut last = steps.next()?;
    let mut holder = document;
    for next in steps {
        holder = match holder {
            Value::Object(object) => object.get_mut(&last)?,
            Value::Array(items) => {
                let index = position(&last, items.len()).ok()?;
                items.get_mut(index)?
            }
            _ => return None,
        };
        last = next;
    }
    (holder.is_object() || holder.is_array()).then_some((holder, last))
}

/// The index that `step` means in a list of `length` items; negative ones count from the end.
fn position(step: &str, length: usize) -> Result<usize, String> {
    let index: i64 =
        step.parse().map_err(|_| format!("strconv.Atoi: parsing {step:?}: invalid syntax"))?;
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let index = if index < 0 { index + length } else { index };
    usize::try_from(index)
        .map_err(|_| format!("Unable to access invalid index: {step}: invalid index referenced"))
}

fn get<'a>(holder: &'a Value, key: &str) -> Result<Option<&'a Value>, String> {
    match holder {
        Value::Array(items) => items.get(position(key, items.len())?).map(Some).ok_or_else(|| {
            format!("Unable to access invalid index: {key}: invalid index referenced")
        }),
        other => Ok(other.get(key)),
    }
}

fn add(document: &mut Value, kind: &str, path: &str, value: Value) -> Result<(), String> {
    let (holder, key) = find(document, path).ok_or_else(|| {
        format!("{kind} operation does not apply: doc is missing path: \"{path}\": {MISSING}")
    })?;
    match holder {
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let index = position(&key, items.len() + 1)?;
            if index > items.len() {
                return Err(format!(
                    "error in {kind} for path: '{path}': Unable to access invalid index: {key}"
                ));
            }
            items.insert(index, value);
        }
        Value::Object(object) => {
            object.insert(key, value);
        }
        _ => {}
    }
    Ok(())
}

fn remove(document: &mut Value, kind: &str, path: &str) -> Result<Value, String> {
    let (holder, key) = find(document, path).ok_or_else(|| {
        format!("{kind} operation does not apply: doc is missing path: \"{path}\": {MISSING}")
    })?;
    let gone = match holder {
        Value::Array(items) => {
            let index = position(&key, items.len())?;
            (index < items.len()).then(|| items.remove(index))
        }
        Value::Object(object) => object.remove(&key),
        _ => None,
    };
    gone.ok_or_else(|| {
        format!(
            "error in {kind} for path: '{path}': Unable to remove nonexistent key: {key}: {MISSING}"
        )
    })
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let (holder, key) = find(document, path).ok_or_else(|| {
        format!("replace operation does not apply: doc is missing path: {path}: {MISSING}")
    })?;
    match holder {
        Value::Array(items) => {
            let index = position(&key, items.len())?;
            let item = items.get_mut(index).ok_or_else(|| {
                format!("replace operation does not apply: doc is missing key: {path}: {MISSING}")
            })?;
            *item = value;
        }
        Value::Object(object) => {
            object.insert(key, value);
        }
        _ => {}
    }
    Ok(())
}

fn test(document: &mut Value, path: &str, value: &Value) -> Result<(), String> {
    let failed = || Err(format!("testing value {path} failed: test failed"));
    if path.is_empty() {
        return if document == value { Ok(()) } else { failed() };
    }
    let (holder, key) = find(document, path).ok_or_else(|| {
        format!("test operation does not apply: is missing path: {path}: {MISSING}")
    })?;
    let found =
        get(holder, &key).map_err(|error| format!("error in test for path: '{path}': {error}"))?;
    if found.unwrap_or(&Value::Null) == value { Ok(()) } else { failed() }
}
