//! Two states of an object, field by field, in the server's terms and without secrets.
//!
//! Must not show what a Secret holds, nor bookkeeping that says nothing to a person.

use phased::child::{INTENT_ANNOTATION, TEMPLATE_ANNOTATION};
use phased::compare::Path;
use phased::stored::{self, Matching};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::apply::{amount, index};

/// What is shown in the place of a secret.
pub const HIDDEN: &str = "(hidden)";
/// Annotation in which `kubectl apply` remembers the manifest.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its path, items named by their keys: `spec.ports[port=5432].targetPort`.
    pub field: String,
    /// Before; `None` when it was not there.
    pub old: Option<String>,
    /// After; `None` when it goes.
    pub new: Option<String>,
}

/// What differs between two states of an object of this kind.
pub fn between(kind: &str, before: &Value, after: &Value) -> Vec<Change> {
    let mut walk = Walk { secret: kind == "Secret", found: Vec::new() };
    walk.values(Some(before), Some(after), &Path::default(), "");
    // The digest of a template follows from the rest of it, and says nothing beside that.
    let digest = format!("spec.template.metadata.annotations[{TEMPLATE_ANNOTATION}]");
    let rest =
        |change: &Change| change.field.starts_with("spec.template.") && change.field != digest;
    if walk.found.iter().any(rest) {
        walk.found.retain(|change| change.field != digest);
    }
    walk.found
}

struct Walk {
    secret: bool,
    found: Vec<Change>,
}

impl Walk {
    fn values(&mut self, old: Option<&Value>, new: Option<&Value>, path: &Path, text: &str) {
        let gone = |value: Option<&Value>| value.is_none_or(|v| stored::is_dropped(v, path));
        if is_noise(text) || (gone(old) && gone(new)) {
            return;
        }
        let none = Map::new();
        match (old, new) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => self.maps(a, b, path, text),
            (Some(Value::Object(a)), None) => self.maps(a, &none, path, text),
            (None, Some(Value::Object(b))) => self.maps(&none, b, path, text),
            (Some(Value::Array(a)), Some(Value::Array(b))) => self.lists(a, b, path, text),
            (Some(Value::Array(a)), None) => self.lists(a, &[], path, text),
            (None, Some(Value::Array(b))) => self.lists(&[], b, path, text),
            (old, new) => self.leaf(old, new, path, text),
        }
    }

    fn maps(&mut self, a: &Map<String, Value>, b: &Map<String, Value>, path: &Path, text: &str) {
        let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
        for name in names {
            let below = below(text, name);
            self.values(a.get(name), b.get(name), &path.field(name), &below);
        }
    }

    fn lists(&mut self, a: &[Value], b: &[Value], path: &Path, text: &str) {
        let Matching::Keys(keys) = stored::matching(path) else {
            return self.places(a, b, path, text);
        };
        let key = |item: &Value| stored::key_of(item, keys);
        if a.iter().chain(b).any(|item| key(item).is_none()) {
            return self.places(a, b, path, text);
        }
        let added = b.iter().filter(|item| a.iter().all(|other| key(other) != key(item)));
        for item in a.iter().chain(added) {
            let is_it = |other: &&Value| key(other) == key(item);
            let (old, new) = (a.iter().find(is_it), b.iter().find(is_it));
            let shown = key(item).map(|parts| {
                let parts: Vec<String> =
                    parts.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
                parts.join(",")
            });
            let text = format!("{text}[{}]", shown.unwrap_or_default());
            self.values(old, new, &index(path, 0), &text);
        }
    }

    fn places(&mut self, a: &[Value], b: &[Value], path: &Path, text: &str) {
        let scalars = a.iter().chain(b).all(|item| !item.is_object() && !item.is_array());
        if scalars {
            let (a, b) = (Value::from(a.to_vec()), Value::from(b.to_vec()));
            let present = |list: &Value| list.as_array().is_some_and(|all| !all.is_empty());
            return self.leaf(
                Some(&a).filter(|list| present(list)),
                Some(&b).filter(|list| present(list)),
                path,
                text,
            );
        }
        for place in 0..a.len().max(b.len()) {
            let text = format!("{text}[{place}]");
            self.values(a.get(place), b.get(place), &index(path, place), &text);
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>, path: &Path, text: &str) {
        let same = match (old, new) {
            (Some(a), Some(b)) => a == b || (stored::is_quantity(path) && amounts_equal(a, b)),
            _ => false,
        };
        if same {
            return;
        }
        let hidden = (self.secret && (text.starts_with("data") || text.starts_with("stringData")))
            || names_a_secret(text);
        let show = |value: &Value| if hidden { HIDDEN.to_owned() } else { plain(value) };
        self.found.push(Change { field: text.to_owned(), old: old.map(show), new: new.map(show) });
    }
}

fn amounts_equal(a: &Value, b: &Value) -> bool {
    amount(a).is_some() && amount(a) == amount(b)
}

fn below(text: &str, name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match (text, plain) {
        ("", true) => name.to_owned(),
        (text, true) => format!("{text}.{name}"),
        (text, false) => format!("{text}[{name}]"),
    }
}

/// Bookkeeping of the server, of kubectl and of ourselves.
fn is_noise(text: &str) -> bool {
    const FIELDS: [&str; 8] = [
        "metadata.managedFields",
        "metadata.resourceVersion",
        "metadata.generation",
        "metadata.creationTimestamp",
        "metadata.uid",
        "metadata.selfLink",
        "metadata.ownerReferences",
        "status",
    ];
    FIELDS.contains(&text)
        || text == format!("metadata.annotations[{INTENT_ANNOTATION}]")
        || text == format!("metadata.annotations[{LAST_APPLIED}]")
}

/// Whether the last part of a path is called as secrets are.
fn names_a_secret(text: &str) -> bool {
    let last = text.rsplit(['.', '[']).next().unwrap_or_default().trim_end_matches(']');
    let last = last.to_ascii_lowercase();
    let named = ["password", "passwd", "passphrase", "privatekey", "apikey", "accesskey"];
    let is_reference = ["name", "ref", "policy", "encryption", "key"];
    let ends = |ending: &&str| last.ends_with(*ending) && last != "privatekey" && last != "apikey";
    named.iter().any(|word| last.replace(['_', '-'], "").contains(word))
        && !is_reference.iter().any(ends)
        || matches!(last.as_str(), "token" | "secretkey")
}

/// A value as people write it.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(kind: &str, before: &Value, after: &Value) -> Vec<String> {
        let show = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let all = between(kind, before, after).into_iter();
        all.map(|c| format!("{}: {} > {}", c.field, show(c.old), show(c.new))).collect()
    }

    #[test]
    fn fields_are_named_by_their_keys_and_amounts_compared_as_amounts() {
        let before = json!({"spec": {"containers": [
            {"name": "web", "image": "a:1", "resources": {"limits": {"cpu": "1"}}}, {"name": "b"}]}});
        let after = json!({"spec": {"containers": [
            {"name": "b"}, {"name": "web", "image": "a:2", "resources": {"limits": {"cpu": "1000m"}}}]}});
        assert_eq!(told("Pod", &before, &after), ["spec.containers[name=web].image: a:1 > a:2"]);
    }

    #[test]
    fn no_value_of_a_secret_is_shown() {
        let before = json!({"data": {"password": "b25l", "user": "dQ=="}, "type": "Opaque"});
        let after = json!({"data": {"password": "dHdv", "user": "dQ=="}, "type": "Opaque"});
        assert_eq!(told("Secret", &before, &after), ["data.password: (hidden) > (hidden)"]);
        let (before, after) = (json!({}), json!({"spec": {"adminPassword": "hunter2"}}));
        assert_eq!(told("Other", &before, &after), ["spec.adminPassword: - > (hidden)"]);
        let after = json!({"spec": {"passwordSecretName": "mine"}});
        assert_eq!(told("Other", &before, &after), ["spec.passwordSecretName: - > mine"]);
    }

    #[test]
    fn bookkeeping_and_empty_values_are_no_difference() {
        let before = json!({"metadata": {"resourceVersion": "1"}, "spec": {"tolerations": []}});
        let after = json!({"metadata": {"resourceVersion": "2", "generation": 4}, "spec": {}});
        assert_eq!(told("Pod", &before, &after), [""; 0]);
    }

    #[test]
    fn the_digest_of_a_template_is_told_only_where_nothing_else_is() {
        let set = |image: &str, digest: &str| {
            json!({"spec": {"template": {"metadata": {"annotations":
                {"steadfast.dev/template": digest}}, "spec": {"image": image}}}})
        };
        assert_eq!(
            told("StatefulSet", &set("a", "1"), &set("b", "2")),
            ["spec.template.spec.image: a > b"]
        );
        assert_eq!(
            told("StatefulSet", &set("a", "1"), &set("a", "2")),
            ["spec.template.metadata.annotations[steadfast.dev/template]: 1 > 2"]
        );
    }

    #[test]
    fn an_added_map_is_told_leaf_by_leaf() {
        let after = json!({"spec": {"parameters": {"work_mem": "64MB"}, "note": ""}});
        assert_eq!(
            told("Database", &json!({"spec": {}}), &after),
            ["spec.parameters.work_mem: - > 64MB"]
        );
    }
}
