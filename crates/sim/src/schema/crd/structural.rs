//! Whether the schemas of a CRD are structural.
//!
//! The commoner mistakes, in the server's words; cost limits of CEL rules are not estimated.

use serde_json::Value;

use super::values::{self, Patterns};
use super::{flag, rules};
use crate::status::Cause;

/// Everything wrong with the schemas of a CRD.
pub(super) fn check(crd: &Value) -> Vec<Cause> {
    let spec = &crd["spec"];
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let first = versions.first().map(|version| &version["schema"]);
    // The server speaks of one common schema where all versions share it.
    let shared = versions.iter().all(|version| Some(&version["schema"]) == first);
    let mut checker = Checker { causes: Vec::new() };
    checker.versions(versions);
    for (index, version) in versions.iter().enumerate().take(if shared { 1 } else { usize::MAX }) {
        let path = if shared {
            "spec.validation.openAPIV3Schema".to_owned()
        } else {
            format!("spec.versions[{index}].schema.openAPIV3Schema")
        };
        let schema = &version["schema"]["openAPIV3Schema"];
        if schema.is_object() {
            checker.root(schema, &path);
        } else {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            checker.causes.push(Cause::new("FieldValueRequired", path, "Required value"));
        }
    }
    checker.causes
}

/// The types a schema can name.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// A version as the server's own struct, which is what its message shows.
fn go_version(version: &Value) -> String {
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
        version["name"],
        flag(version, "served"),
        flag(version, "storage"),
        flag(version, "deprecated"),
        version["deprecationWarning"],
    )
}

/// A rule as the server's own struct, which is what its message shows.
fn go_rule(rule: &Value) -> String {
    let text = |field: &str| rule[field].as_str().map_or_else(|| Value::from(""), Value::from);
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        rule["reason"],
        text("fieldPath"),
        rule["optionalOldSelf"],
    )
}

/// Warnings about a CRD that is accepted: formats that the server does not know.
pub(super) fn warnings(crd: &Value) -> Vec<String> {
    let mut formats = Vec::new();
    for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
        unknown_formats(&version["schema"]["openAPIV3Schema"], &mut formats);
    }
    formats.sort();
    formats.dedup();
    formats.iter().map(|format| format!("unrecognized format {format:?}")).collect()
}

fn unknown_formats(schema: &Value, found: &mut Vec<String>) {
    if let Some(format) = schema["format"].as_str().filter(|format| !format.is_empty()) {
        let known = match schema["type"].as_str() {
            Some("string") | None => values::knows_format(&format.replace('-', "")),
            Some("integer") => matches!(format, "int32" | "int64"),
            Some("number") => matches!(format, "float" | "double"),
            Some(_) => false,
        };
        if !known {
            found.push(format.to_owned());
        }
    }
    for schema in schema["properties"].as_object().into_iter().flat_map(|map| map.values()) {
        unknown_formats(schema, found);
    }
    for inner in ["items", "additionalProperties"] {
        if schema[inner].is_object() {
            unknown_formats(&schema[inner], found);
        }
    }
}

struct Checker {
    causes: Vec<Cause>,
}

impl Checker {
    fn required(&mut self, path: &str, text: &str) {
        let message = format!("Required value: {text}");
        self.causes.push(Cause::new("FieldValueRequired", path, message));
    }

    fn forbidden(&mut self, path: &str, text: &str) {
        self.causes.push(Cause::new("FieldValueForbidden", path, format!("Forbidden: {text}")));
    }

    fn versions(&mut self, versions: &[Value]) {
        let stored = versions.iter().filter(|version| flag(version, "storage")).count();
        if stored == 1 {
            return;
        }
        let shown: Vec<String> = versions.iter().map(go_version).collect();
        self.causes.push(Cause::new(
            "FieldValueInvalid",
            "spec.versions",
            format!(
                "Invalid value: [{}]: must have exactly one version marked as storage version",
                shown.join(",")
            ),
        ));
        if stored == 0 {
            self.causes.push(Cause::new(
                "FieldValueInvalid",
                "status.storedVersions",
                "Invalid value: null: must have at least one stored version",
            ));
        }
    }

    fn root(&mut self, schema: &Value, path: &str) {
        match schema["type"].as_str() {
            None => self.required(&format!("{path}.type"), "must not be empty at the root"),
            Some("object") => {}
            Some(other) => self.causes.push(Cause::new(
                "FieldValueInvalid",
                format!("{path}.type"),
                format!("Invalid value: {other:?}: must be object at the root"),
            )),
        }
        let metadata = &schema["properties"]["metadata"];
        let only_names = metadata["properties"]
            .as_object()
            .is_none_or(|map| map.keys().all(|key| key == "name" || key == "generateName"));
        if metadata.is_object() && !only_names {
            self.forbidden(
                &format!("{path}.properties[metadata]"),
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            );
        }
        self.node(schema, path);
    }

    fn node(&mut self, schema: &Value, path: &str) {
        let properties = schema["properties"].as_object();
        if properties.is_some_and(|map| !map.is_empty())
            && schema["additionalProperties"].is_object()
        {
            self.forbidden(
                &format!("{path}.additionalProperties"),
                "additionalProperties and properties are mutual exclusive",
            );
        }
        if flag(schema, "uniqueItems") {
            self.forbidden(
                &format!("{path}.uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
        self.list(schema, path);
        self.pattern(schema, path);
        self.default(schema, path);
        self.branches(schema, path);
        self.cel(schema, path);
        for (name, schema) in properties.into_iter().flatten() {
            let here = format!("{path}.properties[{name}]");
            self.typed(schema, &here, "must not be empty for specified object fields");
            self.node(schema, &here);
        }
        let extra = &schema["additionalProperties"];
        if extra.is_object() {
            let here = format!("{path}.additionalProperties");
            self.typed(extra, &here, "must not be empty for specified object fields");
            self.node(extra, &here);
        }
        let items = &schema["items"];
        if items.is_object() {
            let here = format!("{path}.items");
            self.typed(items, &here, "must not be empty for specified array items");
            self.node(items, &here);
        }
    }

    /// A default must fit the schema that it belongs to.
    fn default(&mut self, schema: &Value, path: &str) {
        let Some(default) = schema.get("default").filter(|default| !default.is_null()) else {
            return;
        };
        let patterns = Patterns::compile(schema);
        let at = format!("{path}.default");
        self.causes.extend(values::check_part(schema, default, None, &patterns, &at));
    }

    /// Types belong to the structure, not to its alternatives.
    fn branches(&mut self, schema: &Value, path: &str) {
        if flag(schema, "x-kubernetes-int-or-string") {
            return;
        }
        for name in ["allOf", "anyOf", "oneOf"] {
            let branches = schema[name].as_array().into_iter().flatten();
            for (index, _) in branches.enumerate().filter(|(_, one)| one["type"].is_string()) {
                let here = format!("{path}.{name}[{index}].type");
                self.forbidden(&here, "must be empty to be structural");
            }
        }
    }

    fn typed(&mut self, schema: &Value, path: &str, text: &str) {
        let open = flag(schema, "x-kubernetes-int-or-string")
            || flag(schema, "x-kubernetes-preserve-unknown-fields");
        if schema["type"].as_str().is_none_or(str::is_empty) && !open {
            self.required(&format!("{path}.type"), text);
        }
        if let Some(name) = schema["type"].as_str().filter(|name| !TYPES.contains(name)) {
            let quoted: Vec<String> = TYPES.iter().map(|name| format!("{name:?}")).collect();
            self.causes.push(Cause::new(
                "FieldValueNotSupported",
                format!("{path}.type"),
                format!("Unsupported value: {name:?}: supported values: {}", quoted.join(", ")),
            ));
        }
    }

    fn list(&mut self, schema: &Value, path: &str) {
        if schema["type"] == "array" && !schema["items"].is_object() {
            self.required(&format!("{path}.items"), "must be specified");
        }
        let structs = schema["items"]["type"] == "object"
            && schema["items"]["x-kubernetes-map-type"] != "atomic";
        if schema["x-kubernetes-list-type"] == "set" && structs {
            self.causes.push(Cause::new(
                "FieldValueInvalid",
                format!("{path}.items.x-kubernetes-map-type"),
                "Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            ));
        }
        let keys = schema["x-kubernetes-list-map-keys"].as_array().map_or(&[][..], Vec::as_slice);
        if schema["x-kubernetes-list-type"] != "map" {
            return;
        }
        let keys_path = format!("{path}.x-kubernetes-list-map-keys");
        if keys.is_empty() {
            self.required(&keys_path, "must not be empty if x-kubernetes-list-type is map");
        }
        let item = &schema["items"];
        let required = item["required"].as_array().map_or(&[][..], Vec::as_slice);
        for key in keys {
            let name = key.as_str().unwrap_or_default();
            let property = &item["properties"][name];
            if !property.is_object() {
                self.causes.push(Cause::new(
                    "FieldValueInvalid",
                    keys_path.clone(),
                    format!(
                        "Invalid value: {}: entries must all be names of item properties",
                        Value::from(keys)
                    ),
                ));
            } else if property["default"].is_null() && !required.contains(key) {
                self.required(
                    &format!("{path}.items.properties[{name}].default"),
                    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
                );
            }
        }
    }

    fn pattern(&mut self, schema: &Value, path: &str) {
        if let Some(pattern) = schema["pattern"].as_str()
            && regex::Regex::new(pattern).is_err()
        {
            self.causes.push(Cause::new(
                "FieldValueInvalid",
                format!("{path}.pattern"),
                format!(
                    "Invalid value: {pattern:?}: must be a valid regular expression, but isn't"
                ),
            ));
        }
    }

    fn cel(&mut self, schema: &Value, path: &str) {
        let rules_here = schema["x-kubernetes-validations"].as_array();
        for (index, rule) in rules_here.into_iter().flatten().enumerate() {
            let here = format!("{path}.x-kubernetes-validations[{index}]");
            let text = rule["rule"].as_str().unwrap_or_default().trim();
            if text.is_empty() {
                self.required(&format!("{here}.rule"), "rule is not specified");
            } else if let Some(error) = rules::broken(schema, text) {
                self.causes.push(Cause::new(
                    "FieldValueInvalid",
                    format!("{here}.rule"),
                    format!("Invalid value: {}: compilation failed: {error}", go_rule(rule)),
                ));
            }
        }
    }
}
