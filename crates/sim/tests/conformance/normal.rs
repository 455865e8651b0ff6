//! Makes answers of two servers comparable: uids, times, addresses, versions and generated names become
//! placeholders, nothing else; lists whose order is chance are sorted.
//!
//! A placeholder keeps what identity says: the uid of an owner shows as the uid of that owner, and a
//! version shows whether it moved since the object was last seen.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Beginning of the name of the volume with a pod's own token.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// What has been seen in one scenario.
#[derive(Default)]
pub(crate) struct Eyes {
    /// Placeholders of texts that servers make up.
    names: BTreeMap<String, String>,
    incarnations: BTreeMap<String, usize>,
    /// The version at which each uid was last seen.
    versions: BTreeMap<String, String>,
}

impl Eyes {
    /// Lets `value` show as `<name>` from here on; a plain number would be found by accident.
    pub(crate) fn name(&mut self, name: &str, value: &str) {
        if value.len() > 3 && !is_uid(value) && !value.bytes().all(|byte| byte.is_ascii_digit()) {
            self.names.entry(value.to_owned()).or_insert_with(|| format!("<{name}>"));
        }
    }

    /// The body with placeholders. `moving`: the object changes by itself, so its version says nothing.
    pub(crate) fn normalise(&mut self, mut body: Value, moving: bool) -> Value {
        let kind = body
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or("")
            .trim_end_matches("List")
            .to_owned();
        self.register(&body, &kind);
        table(&mut body);
        let _ = causes(&mut body);
        self.replace(&mut body, "", moving);
        if let Value::Array(events) = &mut body {
            // How often a server says where it is depends on the second in which it was asked.
            events.dedup_by(|one, other| one["type"] == "BOOKMARK" && one == other);
        }
        body
    }

    /// Remembers the uids and generated names of every object in `value`.
    fn register(&mut self, value: &Value, kind: &str) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.register(item, kind)),
            Value::Object(members) => {
                if let Some(Value::Object(metadata)) = members.get("metadata") {
                    let kind = members.get("kind").and_then(Value::as_str).unwrap_or(kind);
                    self.register_object(kind, metadata);
                }
                let name = members.get("name").and_then(Value::as_str).unwrap_or("");
                if let Some(end) = name.strip_prefix(TOKEN_VOLUME).filter(|end| end.len() == 5) {
                    let shown = format!("{TOKEN_VOLUME}<generated>");
                    self.names.insert(format!("{TOKEN_VOLUME}{end}"), shown);
                }
                members.values().for_each(|member| self.register(member, kind));
            }
            _ => {}
        }
    }

    fn register_object(&mut self, kind: &str, metadata: &Map<String, Value>) {
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or("");
        let (uid, name, prefix) = (text("uid"), text("name"), text("generateName"));
        if !prefix.is_empty() && name.len() == prefix.len() + 5 && name.starts_with(prefix) {
            self.names.entry(name.to_owned()).or_insert_with(|| format!("{prefix}<generated>"));
        }
        if uid.is_empty() || self.names.contains_key(uid) {
            return;
        }
        let shown = self.names.get(name).map_or(name, String::as_str);
        let identity = format!("{kind}/{shown}");
        let number = self.incarnations.entry(identity.clone()).or_default();
        *number += 1;
        let again = if *number > 1 { format!(" #{number}") } else { String::new() };
        self.names.insert(uid.to_owned(), format!("<uid of {identity}{again}>"));
    }

    fn replace(&mut self, value: &mut Value, name: &str, moving: bool) {
        match value {
            Value::String(text) => self.replace_text(text, name),
            Value::Array(items) => {
                items.iter_mut().for_each(|item| self.replace(item, name, moving));
                if name == "managedFields" {
                    *value = by_manager(std::mem::take(items));
                }
            }
            Value::Object(members) => self.replace_members(members, moving),
            Value::Number(_) if matches!(name, "nodePort" | "healthCheckNodePort") => {
                *value = Value::from("<port>");
            }
            _ => {}
        }
    }

    fn replace_members(&mut self, members: &mut Map<String, Value>, moving: bool) {
        let uid = members.get("uid").and_then(Value::as_str).unwrap_or("").to_owned();
        for (name, member) in members.iter_mut() {
            if name == "resourceVersion" && member.is_string() {
                let version = member.as_str().unwrap_or("").to_owned();
                *member = Value::from(self.version(&uid, &version, moving));
            } else {
                self.replace(member, name, moving);
            }
        }
        // Paths of managedFields name list items by their keys, uids among them.
        let renamed = members.keys().map(|name| (name.clone(), self.without_names(name)));
        let renamed: Vec<_> = renamed.filter(|(name, shown)| name != shown).collect();
        for (name, shown) in renamed {
            if let Some(member) = members.remove(&name) {
                members.insert(shown, member);
            }
        }
    }

    fn version(&mut self, uid: &str, version: &str, moving: bool) -> &'static str {
        if uid.is_empty() {
            return if matches!(version, "" | "0") { "" } else { "<version>" };
        }
        let before = self.versions.insert(uid.to_owned(), version.to_owned());
        match before {
            _ if moving => "<version>",
            Some(before) if before == version => "<same version>",
            _ => "<new version>",
        }
    }

    fn replace_text(&mut self, text: &mut String, name: &str) {
        if name == "continue" && !text.is_empty() {
            *text = "<continue>".to_owned();
            return;
        }
        if let Some(shown) = time(text).or_else(|| address(text)) {
            *text = shown.to_owned();
            return;
        }
        *text = self.without_names(text);
        if text.to_lowercase().contains("resource version") || text.contains("esourceVersion") {
            *text = without_numbers(text);
        }
    }

    fn without_names(&self, text: &str) -> String {
        // Longer ones first: a generated name may begin with another one.
        let mut known: Vec<_> =
            self.names.iter().filter(|(value, _)| text.contains(value.as_str())).collect();
        known.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        let mut shown = text.to_owned();
        for (value, name) in known {
            shown = shown.replace(value.as_str(), name);
        }
        without_uids(&shown)
    }
}

/// The cells of a table that show an age. In a stream only the first table names its columns.
fn table(body: &mut Value) {
    let mut ages = Vec::new();
    match body {
        Value::Array(events) => {
            events.iter_mut().for_each(|event| ages_of(&mut event["object"], &mut ages));
        }
        body => ages_of(body, &mut ages),
    }
}

fn ages_of(table: &mut Value, ages: &mut Vec<usize>) {
    if table.get("kind").is_none_or(|kind| kind != "Table") {
        return;
    }
    if let Some(columns) = table["columnDefinitions"].as_array().filter(|list| !list.is_empty()) {
        *ages = (0..columns.len()).filter(|at| columns[*at]["name"] == "Age").collect();
    }
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        for at in ages.iter() {
            row["cells"][*at] = Value::from("<age>");
        }
    }
}

/// The causes of a refusal in order of their fields, where the server has them in the order of a Go map,
/// which is another one each time: for custom resources and for conflicts between managers.
fn causes(body: &mut Value) -> Option<()> {
    let details = body.get_mut("details")?;
    let group = details.get("group").and_then(Value::as_str).unwrap_or("");
    let custom = group.ends_with("example.com");
    let list = details.get_mut("causes")?.as_array_mut()?;
    let conflict = list.first()?.get("reason")? == "FieldManagerConflict";
    if !custom && !conflict {
        return None;
    }
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or("").to_owned();
    list.sort_by_key(|cause| (text(cause, "field"), text(cause, "message")));
    let each =
        list.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message")));
    let joined = each.collect::<Vec<_>>().join(", ");
    let message = body.get("message")?.as_str()?.to_owned();
    // Only the order changes; a message that does not list its causes stays as it is.
    let (start, listed) = message.split_once(" is invalid: [")?;
    if listed.len() == joined.len() + 1 {
        body["message"] = Value::from(format!("{start} is invalid: [{joined}]"));
    }
    None
}

/// Entries by what identifies them: their order follows times.
fn by_manager(entries: Vec<Value>) -> Value {
    let mut named = Map::new();
    for entry in entries {
        let text = |name: &str| entry[name].as_str().unwrap_or("").to_owned();
        let name = format!("{} {} {}", text("operation"), text("manager"), text("subresource"));
        let twice = named.insert(name.trim_end().to_owned(), entry);
        if let Some(other) = twice {
            named.insert(format!("{name} again"), other);
        }
    }
    Value::Object(named)
}

fn time(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let dated = bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[10] == b'T'
        && bytes.ends_with(b"Z")
        && text.parse::<jiff::Timestamp>().is_ok();
    match (dated, bytes.len()) {
        (false, _) => None,
        (true, 20) => Some("<time>"),
        (true, _) => Some("<precise time>"),
    }
}

fn address(text: &str) -> Option<&'static str> {
    text.parse::<std::net::IpAddr>().is_ok().then_some("<address>")
}

fn is_uid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn without_uids(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        if rest.get(..36).is_some_and(is_uid) {
            shown.push_str("<uid>");
            rest = &rest[36..];
        } else {
            let step = rest.chars().next().map_or(1, char::len_utf8);
            shown.push_str(&rest[..step]);
            rest = &rest[step..];
        }
    }
    shown
}

/// Numbers that stand by themselves; those within names, such as `k8s`, stay.
fn without_numbers(text: &str) -> String {
    let apart = |character: char| !character.is_ascii_alphanumeric() && character != '.';
    let parts = text.split_inclusive(apart).map(|part| {
        let word = part.trim_end_matches(apart);
        let number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        if number { part.replacen(word, "<version>", 1) } else { part.to_owned() }
    });
    parts.collect()
}
