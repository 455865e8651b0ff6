//! What a user does with kubectl, for tests and demos: apply, create, edit, delete, look.
//!
//! Must not do anything that a user with kubectl could not do.

use std::sync::Arc;

use serde_json::Value;

use super::World;
use crate::builtin::field;
use crate::{Actor, Core, DeleteOptions, Failure, Kind, Options, Patch};

impl World {
    /// `kubectl apply --server-side --force-conflicts` of every document in the text.
    ///
    /// # Errors
    /// The server's answer for the first document that it refuses.
    pub fn apply(&self, yaml: &str) -> Result<Vec<Value>, Failure> {
        self.apply_as("kubectl", yaml)
    }

    /// The same as another field manager.
    ///
    /// # Errors
    /// The server's answer for the first document that it refuses.
    pub fn apply_as(&self, manager: &str, yaml: &str) -> Result<Vec<Value>, Failure> {
        let actor = Actor::new("kubernetes-admin", manager);
        let mut applied = Vec::new();
        for object in documents(yaml)? {
            let answer = self.cluster.with(|core| {
                let kind = kind_of(core, &object)?;
                let namespace = namespace_of(&kind, &object);
                let key = kind.key(&namespace, field::name(&object));
                let patch = Patch::Apply { object, force: true };
                core.patch(&actor, &kind, &key, patch, None, &Options::default())
            })?;
            applied.push(answer);
        }
        Ok(applied)
    }

    /// `kubectl create` of every document in the text.
    ///
    /// # Errors
    /// The server's answer for the first document that it refuses.
    pub fn create(&self, yaml: &str) -> Result<Vec<Value>, Failure> {
        let actor = Actor::new("kubernetes-admin", "kubectl-create");
        let mut created = Vec::new();
        for object in documents(yaml)? {
            let answer = self.cluster.with(|core| {
                let kind = kind_of(core, &object)?;
                let namespace = namespace_of(&kind, &object);
                core.create(&actor, &kind, &namespace, object, &Options::default())
            })?;
            created.push(answer);
        }
        Ok(created)
    }

    /// The object as stored; `kind` is a kind or plural name.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        self.cluster.with(|core| {
            let kind = named(core, kind)?;
            core.store.get(&kind.key(namespace, name)).cloned()
        })
    }

    /// All objects of a kind in a namespace (`""`: in all), in order of their keys.
    pub fn list(&self, kind: &str, namespace: &str) -> Vec<Value> {
        self.cluster.with(|core| {
            let Some(kind) = named(core, kind) else { return Vec::new() };
            let namespace = Some(namespace).filter(|text| !text.is_empty());
            let found = core.store.list(kind.storage_group(), &kind.plural, namespace);
            found.map(|(_, object)| object.clone()).collect()
        })
    }

    /// `kubectl edit`: reads, changes, and writes back with the resourceVersion that was read.
    ///
    /// # Errors
    /// The server's answer when it refuses.
    pub fn edit(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Value, Failure> {
        let actor = Actor::new("kubernetes-admin", "kubectl-edit");
        self.cluster.with(|core| {
            let kind = named(core, kind).ok_or_else(|| unknown(kind))?;
            let key = kind.key(namespace, name);
            let found = core.store.get(&key).cloned();
            let mut object = found.ok_or_else(|| Failure::not_found(&kind, name))?;
            change(&mut object);
            core.update(&actor, &kind, &key, object, None, &Options::default())
        })
    }

    /// `kubectl delete --wait=false`.
    ///
    /// # Errors
    /// The server's answer when it refuses.
    pub fn delete(&self, kind: &str, namespace: &str, name: &str) -> Result<(), Failure> {
        self.delete_with(
            kind,
            namespace,
            name,
            DeleteOptions {
                propagation: Some(crate::Propagation::Background),
                ..DeleteOptions::default()
            },
        )
    }

    /// Deletes with options of its own, such as `--cascade=orphan` or `--grace-period=0`.
    ///
    /// # Errors
    /// The server's answer when it refuses.
    pub fn delete_with(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        options: DeleteOptions,
    ) -> Result<(), Failure> {
        let actor = Actor::new("kubernetes-admin", "kubectl");
        self.cluster.with(|core| {
            let kind = named(core, kind).ok_or_else(|| unknown(kind))?;
            let key = kind.key(namespace, name);
            core.delete(&actor, &kind, &key, &options).map(|_| ())
        })
    }

    /// Reasons and messages of the Events about an object, oldest first.
    pub fn events(&self, namespace: &str, name: &str) -> Vec<(String, String)> {
        let mut events = self.list("Event", namespace);
        events.retain(|event| field::text(event, "/involvedObject/name") == name);
        events.sort_by_key(|event| field::text(event, "/metadata/resourceVersion").len());
        let pick = |event: &Value, member: &str| field::text(event, member).to_owned();
        events.iter().map(|event| (pick(event, "/reason"), pick(event, "/message"))).collect()
    }
}

fn documents(yaml: &str) -> Result<Vec<Value>, Failure> {
    let parsed: Result<Vec<Value>, _> = serde_saphyr::from_multiple(yaml);
    let parsed = parsed.map_err(|error| Failure::bad_request(error.to_string()))?;
    Ok(parsed.into_iter().filter(|one| !one.is_null()).collect())
}

fn kind_of(core: &Core, object: &Value) -> Result<Arc<Kind>, Failure> {
    let (version, kind) = (field::text(object, "/apiVersion"), field::text(object, "/kind"));
    core.kinds.by_kind(version, kind).ok_or_else(|| unknown(kind))
}

fn named(core: &Core, name: &str) -> Option<Arc<Kind>> {
    core.kinds.all().find(|kind| kind.kind == name || kind.plural == name).cloned()
}

fn unknown(kind: &str) -> Failure {
    Failure::bad_request(format!("no matches for kind \"{kind}\""))
}

fn namespace_of(kind: &Kind, object: &Value) -> String {
    match (kind.namespaced, field::namespace(object)) {
        (false, _) => String::new(),
        (true, "") => "default".to_owned(),
        (true, namespace) => namespace.to_owned(),
    }
}
