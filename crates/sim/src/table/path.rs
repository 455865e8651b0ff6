//! The part of JSONPath that printer columns use: fields, indexes, `[*]` and `[?(@.a=="b")]`.

use serde_json::Value;

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
    All,
    Where(String, String),
}

/// The first value at `path`; none when there is nothing or the path is not understood.
pub(super) fn first(object: &Value, path: &str) -> Option<Value> {
    let mut found = vec![object];
    for step in steps(path)? {
        found = found.into_iter().flat_map(|value| take(value, &step)).collect();
    }
    found.first().map(|value| (*value).clone())
}

fn take<'a>(value: &'a Value, step: &Step) -> Vec<&'a Value> {
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(at) => value.get(at).into_iter().collect(),
        Step::All => match value {
            Value::Array(list) => list.iter().collect(),
            Value::Object(map) => map.values().collect(),
            _ => Vec::new(),
        },
        Step::Where(path, wanted) => value
            .as_array()
            .into_iter()
            .flatten()
            .filter(|entry| match first(entry, path) {
                Some(Value::String(text)) => text == *wanted,
                Some(other) => {
                    let text = other.to_string();
                    text == *wanted
                }
                None => false,
            })
            .collect(),
    }
}

fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}');
    rest = rest.strip_prefix('$').unwrap_or(rest);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let end =
                if after.starts_with('?') { after.find(")]")? + 1 } else { after.find(']')? };
            steps.push(bracket(&after[..end])?);
            rest = &after[end + 1..];
        } else {
            let (name, after) = field(rest.strip_prefix('.').unwrap_or(rest));
            steps.push(if name == "*" { Step::All } else { Step::Field(name) });
            rest = after;
        }
    }
    Some(steps)
}

/// A field name up to the next step; a backslash keeps a dot inside the name.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, kept)| kept)),
            '.' | '[' => return (name, &text[at..]),
            _ => name.push(letter),
        }
    }
    (name, "")
}

fn bracket(inner: &str) -> Option<Step> {
    if inner == "*" {
        return Some(Step::All);
    }
    if let Some(condition) = inner.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        let (path, wanted) = condition.split_once("==")?;
        let path = path.trim().strip_prefix('@')?.to_owned();
        let wanted = wanted.trim().trim_matches(['"', '\'']).to_owned();
        return Some(Step::Where(path, wanted));
    }
    match inner.parse() {
        Ok(at) => Some(Step::Index(at)),
        Err(_) => Some(Step::Field(inner.trim_matches(['"', '\'']).to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn paths_of_printer_columns_are_followed() {
        let object = json!({
            "metadata": { "labels": { "a.b/c": "yes" } },
            "status": { "conditions": [
                { "type": "Ready", "status": "True" }, { "type": "Other", "status": "False" },
            ] },
        });
        let table = [
            (".status.conditions[?(@.type==\"Other\")].status", json!("False")),
            (".status.conditions[?(@.type=='Ready')].status", json!("True")),
            (".status.conditions[1].type", json!("Other")),
            (".metadata.labels.a\\.b/c", json!("yes")),
            (".metadata.labels['a.b/c']", json!("yes")),
        ];
        for (path, wanted) in table {
            assert_eq!(super::first(&object, path), Some(wanted), "{path}");
        }
        assert_eq!(super::first(&object, ".status.phase"), None);
    }
}
