//! CustomResourceDefinitions: their defaults and status, serving and unserving their kinds.
//!
//! The real server does this in controllers a moment later; here it is part of the same write.

use std::sync::Arc;

use serde_json::{Value, json};

use super::metadata;
use crate::clock;
use crate::cluster::{Actor, Core, DeleteOptions, Sub};
use crate::kind::{Column, Kind, ScalePaths};
use crate::schema;
use crate::status::{Cause, Failure};
use crate::store::Key;

/// Finalizer that keeps a definition until its last object is gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

/// Whether `kind` is the kind of definitions.
pub(super) fn is_definition(kind: &Kind) -> bool {
    kind.group == GROUP && kind.plural == PLURAL
}

/// The name of a definition is made of its plural and its group.
pub(super) fn name_cause(object: &Value) -> Option<Cause> {
    let spec = &object["spec"];
    let wanted = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    let name = metadata::text(object, "name");
    (name != wanted).then(|| {
        let message =
            format!("Invalid value: \"{name}\": must be spec.names.plural+\".\"+spec.group");
        Cause::new("FieldValueInvalid", "metadata.name", message)
    })
}

/// Marks a definition as being deleted; unlike other kinds it gets a condition for that, and
/// neither a grace period nor a new generation.
pub(super) fn mark_deleting(object: &mut Value, now: jiff::Timestamp) {
    let now = clock::seconds(now);
    object["metadata"]["deletionTimestamp"] = json!(now);
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "Terminating");
    conditions.push(json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": now,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }));
    object["status"]["conditions"] = json!(conditions);
}

/// Defaults of a definition, which its writer owns.
pub(super) fn complete(kind: &Kind, object: &mut Value) {
    if !is_definition(kind) {
        return;
    }
    let names = &mut object["spec"]["names"];
    let kind_name = names["kind"].as_str().unwrap_or("").to_owned();
    if names["singular"].as_str().is_none_or(str::is_empty) {
        names["singular"] = json!(kind_name.to_lowercase());
    }
    if names["listKind"].as_str().is_none_or(str::is_empty) {
        names["listKind"] = json!(format!("{kind_name}List"));
    }
    if object["spec"]["conversion"].is_null() {
        object["spec"]["conversion"] = json!({ "strategy": "None" });
    }
}

/// The status of a definition that no controller has seen yet.
pub(super) fn begin(kind: &Kind, object: &mut Value) {
    if !is_definition(kind) {
        return;
    }
    let stored: Vec<&Value> = versions(&object["spec"])
        .filter(|version| version["storage"] == json!(true))
        .map(|version| &version["name"])
        .collect();
    object["status"] = json!({
        "conditions": null, "acceptedNames": { "plural": "", "kind": "" }, "storedVersions": stored,
    });
}

impl Core {
    /// What the server's own controllers do to a definition: its finalizer, its names, its status.
    pub(super) fn accept_definition(&mut self, kind: &Kind, created: &Value) {
        if !is_definition(kind) || metadata::deleting(created) {
            return;
        }
        let key = Key::new(GROUP, PLURAL, "", metadata::text(created, "name"));
        let mut object = created.clone();
        let mut finalizers = metadata::finalizers(&object);
        if !finalizers.iter().any(|name| name == CLEANUP) {
            finalizers.push(CLEANUP.to_owned());
        }
        metadata::set_finalizers(&mut object, &finalizers);
        let (names, conflict) = self.accepted_names(&key.name, &object["spec"]);
        object["status"]["acceptedNames"] = names;
        object["status"]["conditions"] = self.conditions(&created["status"], conflict);
        remember_storage(&mut object);
        let by = Actor::new("system:apiserver", "kube-apiserver");
        self.track(&by, kind, Some(Sub::Status), Some(created), &mut object);
        if object != *created {
            self.keep(kind, key, object);
        }
    }

    fn conditions(&self, old: &Value, conflict: Option<(&str, String)>) -> Value {
        let now = clock::seconds(self.now());
        let condition = |kind: &str, status: &str, reason: &str, message: &str| {
            let known = old["conditions"].as_array().into_iter().flatten();
            let since = known
                .filter(|known| known["type"] == kind && known["status"] == status)
                .map(|known| text(&known["lastTransitionTime"]))
                .next()
                .unwrap_or_else(|| now.clone());
            json!({
                "type": kind, "status": status, "lastTransitionTime": since,
                "reason": reason, "message": message,
            })
        };
        match conflict {
            Some((reason, message)) => json!([
                condition("NamesAccepted", "False", reason, &message),
                condition("Established", "False", "NotAccepted", "not all names are accepted"),
            ]),
            None => json!([
                condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
                condition(
                    "Established",
                    "True",
                    "InitialNamesAccepted",
                    "the initial names have been accepted",
                ),
            ]),
        }
    }

    /// The names that no other definition of the group has, and the last conflict.
    fn accepted_names(&self, name: &str, spec: &Value) -> (Value, Option<(&'static str, String)>) {
        let (mut resources, mut kinds) = (Vec::new(), Vec::new());
        for (key, other) in self.store.list(GROUP, PLURAL, None) {
            if key.name == name || other["spec"]["group"] != spec["group"] {
                continue;
            }
            let accepted = &other["status"]["acceptedNames"];
            resources.extend([text(&accepted["plural"]), text(&accepted["singular"])]);
            resources.extend(texts(&accepted["shortNames"]));
            kinds.extend([text(&accepted["kind"]), text(&accepted["listKind"])]);
        }
        let wanted = &spec["names"];
        let mut accepted = json!({ "plural": "", "kind": "" });
        let mut conflict = None;
        let checks = [
            ("plural", "PluralConflict", &resources),
            ("singular", "SingularConflict", &resources),
            ("shortNames", "ShortNamesConflict", &resources),
            ("kind", "KindConflict", &kinds),
            ("listKind", "ListKindConflict", &kinds),
        ];
        for (field, reason, taken) in checks {
            let mut values = texts(&wanted[field]);
            values.extend(wanted[field].as_str().map(str::to_owned));
            match values.iter().find(|value| taken.contains(value)) {
                Some(value) => conflict = Some((reason, format!("\"{value}\" is already in use"))),
                None if !wanted[field].is_null() => accepted[field] = wanted[field].clone(),
                None => {}
            }
        }
        if let Some(categories) = wanted.get("categories") {
            accepted["categories"] = categories.clone();
        }
        (accepted, conflict)
    }

    /// Looks again at definitions whose names were taken, after one has gone.
    fn reconsider_definitions(&mut self, group: &Value) {
        let refused: Vec<Value> = self
            .store
            .list(GROUP, PLURAL, None)
            .filter(|(_, other)| other["spec"]["group"] == *group && !established(other))
            .map(|(_, other)| other.clone())
            .collect();
        let Some(kind) = self.kinds.get(GROUP, PLURAL) else { return };
        for definition in refused {
            self.accept_definition(&kind, &definition);
        }
    }

    /// Creates of a kind whose definition is on its way out are refused.
    pub(super) fn open_definition(&self, kind: &Kind) -> Result<(), Failure> {
        if !kind.custom {
            return Ok(());
        }
        let key = definition_key(&kind.group, &kind.plural);
        match self.store.get(&key) {
            Some(definition) if metadata::deleting(definition) => Err(Failure::new(
                405,
                "MethodNotAllowed",
                "create not allowed while custom resource definition is terminating",
            )),
            _ => Ok(()),
        }
    }

    /// Serves what a stored definition defines.
    pub(super) fn follow_definition(&mut self, kind: &Kind, stored: &Value) {
        if !is_definition(kind) {
            return;
        }
        let spec = &stored["spec"];
        if !established(stored) {
            return;
        }
        let Ok(compiled) = schema::crd::compile(stored) else { return };
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        self.kinds.unregister(&group, &plural);
        let mut served: Vec<(&Value, Arc<schema::crd::CompiledVersion>)> = versions(spec)
            .zip(compiled)
            .filter(|(version, _)| version["served"] == json!(true))
            .map(|(version, compiled)| (version, Arc::new(compiled)))
            .collect();
        served.sort_by_key(|(version, _)| crate::kind::priority(&text(&version["name"])));
        for (version, compiled) in served {
            self.kinds.register(custom_kind(spec, version, compiled));
        }
    }

    /// Stops serving what a vanished definition defined.
    pub(super) fn forget_definition(&mut self, kind: &Kind, gone: &Value) {
        if is_definition(kind) {
            let spec = &gone["spec"];
            if established(gone) {
                self.kinds.unregister(&text(&spec["group"]), &text(&spec["names"]["plural"]));
            }
            self.reconsider_definitions(&spec["group"]);
        }
    }

    /// Deletes every object of a definition that has just been marked for deletion.
    pub(super) fn sweep_definition(&mut self, by: &Actor, kind: &Kind, marked: &Value) {
        if !is_definition(kind) || !metadata::deleting(marked) {
            return;
        }
        let spec = &marked["spec"];
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        if let Some(custom) = self.kinds.get(&group, &plural) {
            // Objects with finalizers stay for now; the definition waits for them.
            let _ = self.delete_collection(by, &custom, None, &|_| true, &DeleteOptions::default());
        }
        self.finish_definition(&group, &plural);
    }

    /// Ends a definition that waits for its last object once there is none.
    pub(super) fn finish_definition(&mut self, group: &str, plural: &str) {
        let key = definition_key(group, plural);
        let Some(definition) = self.store.get(&key) else { return };
        if !metadata::deleting(definition) || self.store.list(group, plural, None).next().is_some()
        {
            return;
        }
        let mut remaining = metadata::finalizers(definition);
        remaining.retain(|name| name != CLEANUP);
        let mut definition = definition.clone();
        let Some(kind) = self.kinds.get(GROUP, PLURAL) else { return };
        if remaining.is_empty() {
            self.vanish(&kind, &key);
        } else {
            metadata::set_finalizers(&mut definition, &remaining);
            self.store.put(key, definition);
        }
    }
}

/// Versions that objects may be stored in are never forgotten.
fn remember_storage(definition: &mut Value) {
    let mut stored = texts(&definition["status"]["storedVersions"]);
    let storage = versions(&definition["spec"])
        .find(|version| version["storage"] == json!(true))
        .map(|version| text(&version["name"]));
    if let Some(storage) = storage
        && !stored.contains(&storage)
    {
        stored.push(storage);
        definition["status"]["storedVersions"] = json!(stored);
    }
}

fn established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

fn definition_key(group: &str, plural: &str) -> Key {
    Key::new(GROUP, PLURAL, "", &format!("{plural}.{group}"))
}

fn versions(spec: &Value) -> impl Iterator<Item = &Value> {
    spec["versions"].as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn custom_kind(spec: &Value, version: &Value, compiled: Arc<schema::crd::CompiledVersion>) -> Kind {
    let names = &spec["names"];
    let subresources = &version["subresources"];
    let scale = subresources.get("scale").map(|scale| ScalePaths {
        spec_replicas: text(&scale["specReplicasPath"]),
        status_replicas: text(&scale["statusReplicasPath"]),
        selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
    });
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    Kind {
        group: text(&spec["group"]),
        version: text(&version["name"]),
        kind: text(&names["kind"]),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == json!("Namespaced"),
        status: subresources.get("status").is_some(),
        scale,
        schema: compiled.schema.clone(),
        columns: columns(version),
        custom: true,
        selectable: selectable.map(|field| text(&field["jsonPath"])).collect(),
        compiled: Some(compiled),
        generation: true,
        unconditional_update: false,
    }
}

fn columns(version: &Value) -> Vec<Column> {
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    columns
        .map(|column| Column {
            name: text(&column["name"]),
            kind: text(&column["type"]),
            format: text(&column["format"]),
            description: text(&column["description"]),
            priority: column["priority"].as_i64().unwrap_or(0),
            json_path: text(&column["jsonPath"]),
        })
        .collect()
}
