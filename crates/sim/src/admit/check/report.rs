//! Where a check is in an object, and what it found.

use serde_json::Value;

use crate::status::Cause;

/// A value and its path.
#[derive(Clone)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    pub(super) path: String,
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value) -> Node<'a> {
        Node { value, path: String::new() }
    }

    /// The field `name`; null where there is none.
    pub(super) fn field(&self, name: &str) -> Node<'a> {
        let path =
            if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Node { value: &self.value[name], path }
    }

    /// The field if it is there.
    pub(super) fn some(&self, name: &str) -> Option<Node<'a>> {
        let node = self.field(name);
        (!node.value.is_null()).then_some(node)
    }

    /// The fields along a dotted path.
    pub(super) fn at(&self, path: &str) -> Node<'a> {
        path.split('.').fold(self.clone(), |node, name| node.field(name))
    }

    /// The value under `key` of a map, whose path has brackets.
    pub(super) fn key(&self, key: &str) -> Node<'a> {
        Node { value: &self.value[key], path: format!("{}[{key}]", self.path) }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> impl Iterator<Item = Node<'a>> + use<'a> {
        let path = self.path.clone();
        self.value
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
            .map(move |(index, value)| Node { value, path: format!("{path}[{index}]") })
    }

    /// The entries of a map.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        self.value.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    /// The text, empty where there is none.
    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub(super) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Whether the value is null, or an empty text, list or map.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(object) => object.is_empty(),
            _ => false,
        }
    }
}

/// The causes found so far.
#[derive(Default)]
pub(super) struct Report {
    pub(super) causes: Vec<Cause>,
}

impl Report {
    fn add(&mut self, reason: &'static str, path: &str, message: String) {
        self.causes.push(Cause::new(reason, path, message));
    }

    /// `detail` may be empty.
    pub(super) fn required(&mut self, path: &str, detail: &str) {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        self.add("FieldValueRequired", path, message);
    }

    pub(super) fn invalid(&mut self, node: &Node<'_>, detail: &str) {
        self.invalid_as(&node.path, node.value, detail);
    }

    pub(super) fn invalid_as(&mut self, path: &str, value: &Value, detail: &str) {
        let colon = if detail.is_empty() { "" } else { ": " };
        self.add("FieldValueInvalid", path, format!("Invalid value: {value}{colon}{detail}"));
    }

    /// As the server shows its own structs.
    pub(super) fn invalid_struct(&mut self, path: &str, shown: &str, detail: &str) {
        self.add("FieldValueInvalid", path, format!("Invalid value: {shown}: {detail}"));
    }

    pub(super) fn forbidden(&mut self, path: &str, detail: &str) {
        self.add("FieldValueForbidden", path, format!("Forbidden: {detail}"));
    }

    pub(super) fn duplicate(&mut self, path: &str, shown: &str) {
        self.add("FieldValueDuplicate", path, format!("Duplicate value: {shown}"));
    }

    pub(super) fn not_found(&mut self, node: &Node<'_>) {
        self.add("FieldValueNotFound", &node.path, format!("Not found: {}", node.value));
    }

    pub(super) fn too_long(&mut self, path: &str, most: usize) {
        let message = format!("Too long: may not be more than {most} bytes");
        self.add("FieldValueTooLong", path, message);
    }

    pub(super) fn unsupported(&mut self, path: &str, shown: &str, supported: &[&str]) {
        let quoted: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let message =
            format!("Unsupported value: {shown}: supported values: {}", quoted.join(", "));
        self.add("FieldValueNotSupported", path, message);
    }

    /// A text that must be one of a few.
    pub(super) fn one_of(&mut self, node: &Node<'_>, supported: &[&str]) {
        if !supported.contains(&node.text()) {
            self.unsupported(&node.path, &Value::from(node.text()).to_string(), supported);
        }
    }

    /// The same, where it may be absent.
    pub(super) fn one_of_if_set(&mut self, node: &Node<'_>, supported: &[&str]) {
        if !node.is_empty() {
            self.one_of(node, supported);
        }
    }

    /// A number that may not be below zero.
    pub(super) fn not_negative(&mut self, node: &Node<'_>) {
        if node.number().is_some_and(|number| number < 0) {
            self.invalid(node, "must be greater than or equal to 0");
        }
    }

    /// Every complaint of a text rule about a text.
    pub(super) fn text(&mut self, node: &Node<'_>, complaints: Vec<String>) {
        for complaint in complaints {
            self.invalid(node, &complaint);
        }
    }
}
