//! CustomResourceDefinitions: their defaults and status, serving and unserving their kinds.
//!
//! The real server does this in controllers a moment later; here it is part of the same write.

use std::sync::Arc;

use serde_json::{Value, json};

use super::metadata;
use crate::clock;
use crate::cluster::{Actor, Core, DeleteOptions};
use crate::kind::{Column, Kind, ScalePaths};
use crate::schema;
use crate::status::{Cause, Failure};
use crate::store::Key;

/// Finalizer that keeps a definition until its last object is gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

fn is_definition(kind: &Kind) -> bool {
    kind.group == GROUP && kind.plural == PLURAL
}

/// The name of a definition is made of its plural and its group.
pub(super) fn name_causes(object: &Value) -> Option<Cause> {
    let spec = &object["spec"];
    let (plural, group) = (spec["names"]["plural"].as_str()?, spec["group"].as_str()?);
    let name = metadata::text(object, "name");
    (name != format!("{plural}.{group}")).then(|| {
        Cause::new(
            "FieldValueInvalid",
            "metadata.name",
            format!("Invalid value: \"{name}\": must be spec.names.plural+\".\"+spec.group"),
        )
    })
}

impl Core {
    /// Fills in a new definition: defaults, finalizer and the status it gets at once.
    pub(super) fn begin_definition(&self, kind: &Kind, object: &mut Value) {
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
        let mut finalizers = metadata::finalizers(object);
        if !finalizers.iter().any(|name| name == CLEANUP) {
            finalizers.push(CLEANUP.to_owned());
        }
        metadata::set_finalizers(object, &finalizers);
        object["status"] = self.definition_status(&object["spec"]);
    }

    fn definition_status(&self, spec: &Value) -> Value {
        let now = clock::seconds(self.now());
        let stored: Vec<&Value> = versions(spec)
            .filter(|version| version["storage"] == json!(true))
            .map(|version| &version["name"])
            .collect();
        let condition = |kind: &str, reason: &str, message: &str| {
            json!({
                "type": kind, "status": "True", "lastTransitionTime": now,
                "reason": reason, "message": message,
            })
        };
        json!({
            "conditions": [
                condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            ],
            "acceptedNames": spec["names"],
            "storedVersions": stored,
        })
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
            self.kinds.unregister(&text(&spec["group"]), &text(&spec["names"]["plural"]));
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
