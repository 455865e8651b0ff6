//! Who owns which fields: `metadata.managedFields`, read and written.
//!
//! Holds the entries and their order; how ownership moves is decided in `ownership`.

use std::collections::BTreeMap;

use serde_json::{Map as Object, Value, json};

use super::Writer;
use super::fields::Fields;

/// How many entries of operation Update an object keeps before the oldest are joined.
const MOST_UPDATERS: usize = 10;
/// The manager under which the oldest entries are joined.
const ANCIENT: &str = "ancient-changes";

/// What a manager did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// What makes two entries the same entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    /// Part of the identity for updates only; empty for appliers.
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

impl Identity {
    pub(crate) fn of(writer: &Writer, operation: Operation) -> Identity {
        let manager =
            if writer.manager.is_empty() { "unknown".to_owned() } else { writer.manager.clone() };
        Identity {
            manager,
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => writer.api_version.clone(),
            },
            subresource: writer.subresource.clone().unwrap_or_default(),
        }
    }

    /// As conflict messages name the owner: `"kubectl" using apps/v1`.
    pub(crate) fn printed(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) fields: Fields,
    pub(crate) api_version: String,
    pub(crate) time: Option<String>,
}

/// All entries of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Managers {
    pub(crate) entries: BTreeMap<Identity, Entry>,
}

impl Managers {
    /// Reads the entries of an object; none if they can't be read.
    pub(crate) fn decode(object: &Value) -> Option<Managers> {
        let mut entries = BTreeMap::new();
        let list = match &object["metadata"]["managedFields"] {
            Value::Null => return Some(Managers::default()),
            Value::Array(list) => list,
            _ => return None,
        };
        for encoded in list {
            let (identity, entry) = decode_entry(encoded)?;
            entries.insert(identity, entry);
        }
        Some(Managers { entries })
    }

    /// Writes the entries into an object, in the server's order.
    pub(crate) fn encode(self, object: &mut Value) {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        metadata.remove("managedFields");
        if self.entries.is_empty() {
            return;
        }
        let mut list: Vec<(Identity, Entry)> = self.entries.into_iter().collect();
        list.sort_by(|(a, ours), (b, theirs)| {
            let key = |identity: &Identity, entry: &Entry| {
                (
                    identity.operation,
                    entry.time.clone().unwrap_or_default(),
                    identity.manager.clone(),
                    entry.api_version.clone(),
                    identity.subresource.clone(),
                )
            };
            key(a, ours).cmp(&key(b, theirs))
        });
        let list = list.iter().map(|(identity, entry)| encode_entry(identity, entry)).collect();
        metadata.insert("managedFields".to_owned(), Value::Array(list));
    }

    pub(crate) fn drop_empty(&mut self) {
        self.entries.retain(|_, entry| !entry.fields.is_empty());
    }

    /// Every owned field.
    pub(crate) fn owned(&self) -> Fields {
        self.entries.values().fold(Fields::default(), |all, entry| all.union(&entry.fields))
    }

    /// Joins the oldest entries of operation Update until there are few enough.
    pub(crate) fn cap(&mut self) {
        let mut updaters: Vec<(String, Identity)> = self
            .entries
            .iter()
            .filter(|(identity, _)| identity.operation == Operation::Update)
            .map(|(identity, entry)| (entry.time.clone().unwrap_or_default(), identity.clone()))
            .collect();
        updaters.sort();
        let mut count = updaters.len();
        let mut first: BTreeMap<String, Identity> = BTreeMap::new();
        for (_, identity) in updaters {
            if count <= MOST_UPDATERS {
                return;
            }
            let version = identity.api_version.clone();
            match first.get(&version).cloned() {
                None => {
                    first.insert(version, identity);
                }
                Some(oldest) => {
                    self.join(&oldest, &identity);
                    count -= 1;
                }
            }
        }
    }

    /// Puts the fields of `oldest` and `identity` into the entry for ancient changes.
    fn join(&mut self, oldest: &Identity, identity: &Identity) {
        let bucket = Identity {
            manager: ANCIENT.to_owned(),
            operation: Operation::Update,
            api_version: identity.api_version.clone(),
            subresource: String::new(),
        };
        if !self.entries.contains_key(&bucket)
            && let Some(entry) = self.entries.remove(oldest)
        {
            self.entries.insert(bucket.clone(), entry);
        }
        if *identity == bucket {
            return;
        }
        if let Some(entry) = self.entries.remove(identity)
            && let Some(ancient) = self.entries.get_mut(&bucket)
        {
            ancient.fields = ancient.fields.union(&entry.fields);
            ancient.time = entry.time;
        }
    }
}

fn text(entry: &Value, field: &str) -> String {
    entry[field].as_str().unwrap_or_default().to_owned()
}

fn decode_entry(encoded: &Value) -> Option<(Identity, Entry)> {
    let operation = match encoded["operation"].as_str()? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return None,
    };
    let api_version = text(encoded, "apiVersion");
    if api_version.is_empty() || encoded["fieldsType"] != "FieldsV1" {
        return None;
    }
    let fields = match &encoded["fieldsV1"] {
        Value::Null => Fields::default(),
        fields => Fields::decode(fields)?,
    };
    let identity = Identity {
        manager: text(encoded, "manager"),
        operation,
        api_version: match operation {
            Operation::Apply => String::new(),
            Operation::Update => api_version.clone(),
        },
        subresource: text(encoded, "subresource"),
    };
    let time = encoded["time"].as_str().map(str::to_owned);
    Some((identity, Entry { fields, api_version, time }))
}

fn encode_entry(identity: &Identity, entry: &Entry) -> Value {
    let mut encoded = Object::new();
    if !identity.manager.is_empty() {
        encoded.insert("manager".to_owned(), json!(identity.manager));
    }
    encoded.insert("operation".to_owned(), json!(identity.operation.text()));
    encoded.insert("apiVersion".to_owned(), json!(entry.api_version));
    if let Some(time) = &entry.time {
        encoded.insert("time".to_owned(), json!(time));
    }
    encoded.insert("fieldsType".to_owned(), json!("FieldsV1"));
    encoded.insert("fieldsV1".to_owned(), entry.fields.encode());
    if !identity.subresource.is_empty() {
        encoded.insert("subresource".to_owned(), json!(identity.subresource));
    }
    Value::Object(encoded)
}
