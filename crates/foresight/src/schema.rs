//! What the schema of a definition tells: fields that exist, fields that never change.

use serde_json::Value;

/// The schema of a version in a definition.
pub fn of<'a>(definition: &'a Value, version: &str) -> &'a Value {
    let versions = definition["spec"]["versions"].as_array();
    let found = versions.and_then(|all| all.iter().find(|one| one["name"] == version));
    found.map_or(&Value::Null, |one| &one["schema"]["openAPIV3Schema"])
}

/// Versions that are served.
pub fn served(definition: &Value) -> Vec<&str> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter(|one| one["served"] == true).filter_map(|one| one["name"].as_str()).collect()
}

/// Fields that a rule of the schema keeps from ever changing.
pub fn frozen(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(schema, "", &mut |path, node| {
        let rules = node["x-kubernetes-validations"].as_array().into_iter().flatten();
        if rules.into_iter().any(|rule| rule["rule"] == "self == oldSelf") {
            found.push(path.to_owned());
        }
    });
    found
}

fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, node) in schema["properties"].as_object().into_iter().flatten() {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        walk(node, &below, visit);
    }
}

/// The field that somebody meant who wrote `path`, which does not exist.
pub fn nearest(schema: &Value, path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('.').collect();
    let (last, above) = parts.split_last()?;
    let mut node = schema;
    for part in above {
        let name = part.split('[').next().unwrap_or(part);
        node = &node["properties"][name];
        if node["items"].is_object() {
            node = &node["items"];
        }
    }
    let names = node["properties"].as_object()?.keys();
    let best = names.map(|name| (distance(name, last), name)).min()?;
    let close = best.0 <= last.chars().count().div_ceil(3);
    let found = close.then(|| best.1.clone()).or_else(|| elsewhere(schema, last))?;
    let is_path = found.contains('.');
    let parent = above.join(".");
    Some(if is_path || parent.is_empty() { found } else { format!("{parent}.{found}") })
}

/// A field of this name at another place.
fn elsewhere(schema: &Value, name: &str) -> Option<String> {
    let mut found = None;
    walk(schema, "", &mut |path, _| {
        let last = path.rsplit('.').next().unwrap_or(path);
        if found.is_none() && path.starts_with("spec.") && last.eq_ignore_ascii_case(name) {
            found = Some(path.to_owned());
        }
    });
    found
}

/// How many letters must change, without regard to case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"properties": {"spec": {"properties": {
            "databaseName": {"x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
            "storage": {"properties": {"size": {}, "storageClass": {}}},
            "hosts": {"items": {"properties": {"address": {}}}}}}}})
    }

    #[test]
    fn a_typing_error_leads_to_the_field_that_was_meant() {
        let meant = |path| nearest(&schema(), path);
        assert_eq!(meant("spec.databasename"), Some("spec.databaseName".to_owned()));
        assert_eq!(meant("spec.storag"), Some("spec.storage".to_owned()));
        assert_eq!(meant("spec.storage.szie"), Some("spec.storage.size".to_owned()));
        assert_eq!(meant("spec.hosts[0].adress"), Some("spec.hosts[0].address".to_owned()));
        assert_eq!(meant("spec.storageClass"), Some("spec.storage.storageClass".to_owned()));
        assert_eq!(meant("spec.unheardOf"), None);
    }

    #[test]
    fn fields_that_never_change_are_found_by_their_rule() {
        assert_eq!(frozen(&schema()), ["spec.databaseName"]);
    }
}
