//! Create.

use serde_json::{Value, json};

use super::{Tracking, definition, metadata};
use crate::clock;
use crate::cluster::{Actor, Core, Operation, Options, Review, Sub};
use crate::kind::Kind;
use crate::status::Failure;
use crate::store::Key;
use crate::{admit, schema};

/// How much room a generated suffix leaves for `generateName`, as in Kubernetes.
const LONGEST_BASE: usize = 63 - 5;

impl Core {
    /// Creates an object; answers it as stored.
    ///
    /// # Errors
    /// Whatever the API server would answer: 400, 403, 404, 409 or 422.
    pub fn create(
        &mut self,
        by: &Actor,
        kind: &Kind,
        namespace: &str,
        mut object: Value,
        options: &Options,
    ) -> Result<Value, Failure> {
        self.decode(kind, &mut object, options)?;
        metadata::place(kind, namespace, None, &mut object)?;
        if !metadata::text(&object, "resourceVersion").is_empty() {
            return Err(Failure::new(
                500,
                "",
                "resourceVersion should not be set on objects to be created",
            ));
        }
        self.insert(by, kind, object, Tracking::Update, options)
    }

    /// The part of create that apply shares: everything after decoding.
    pub(super) fn insert(
        &mut self,
        by: &Actor,
        kind: &Kind,
        mut object: Value,
        tracking: Tracking,
        options: &Options,
    ) -> Result<Value, Failure> {
        self.name(kind, &mut object);
        let name = metadata::text(&object, "name").to_owned();
        let namespace = metadata::text(&object, "namespace").to_owned();
        self.open_namespace(kind, &namespace, &name)?;
        self.open_definition(kind)?;
        self.begin(kind, &mut object);
        self.complete(kind, &mut object);
        definition::complete(kind, &mut object);
        let key = kind.key(&namespace, &name);
        if tracking == Tracking::Update {
            self.track(by, kind, None, None, &mut object);
        }
        admit::plugins(kind, &mut object);
        begin_status(kind, &mut object);
        if kind.is("", "PersistentVolume") {
            object["status"]["lastPhaseTransitionTime"] = json!(clock::seconds(self.now()));
        }
        let review = self.review_of(by, Operation::Create, &key, None, options.dry_run);
        self.review(&review, kind, &mut object)?;
        self.validate(kind, &object, None, Vec::new())?;
        if kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            self.warnings.extend(schema::crd::warnings(&object));
        }
        if self.store.get(&key).is_some() {
            return Err(Failure::already_exists(kind, &name));
        }
        if options.dry_run {
            return Ok(object);
        }
        let created = self.keep(kind, key, object);
        self.accept_definition(kind, &created);
        Ok(created)
    }

    pub(super) fn review_of(
        &self,
        by: &Actor,
        operation: Operation,
        key: &Key,
        subresource: Option<Sub>,
        dry_run: bool,
    ) -> Review {
        Review {
            actor: by.clone(),
            operation,
            key: key.clone(),
            subresource,
            old: self.store.share(key),
            dry_run,
        }
    }

    fn name(&mut self, kind: &Kind, object: &mut Value) {
        let base = metadata::text(object, "generateName").to_owned();
        if !metadata::text(object, "name").is_empty() || base.is_empty() {
            return;
        }
        let namespace = metadata::text(object, "namespace").to_owned();
        let base: String = base.chars().take(LONGEST_BASE).collect();
        // The real server tries a few suffixes before it gives up with AlreadyExists.
        for _ in 0..8 {
            let name = format!("{base}{}", self.seed.suffix(5));
            let free = self.store.get(&kind.key(&namespace, &name)).is_none();
            object["metadata"]["name"] = json!(name);
            if free {
                return;
            }
        }
    }

    /// Creates need a namespace that is there and stays.
    fn open_namespace(&self, kind: &Kind, namespace: &str, name: &str) -> Result<(), Failure> {
        if !kind.namespaced {
            return Ok(());
        }
        let Some(namespaces) = self.kinds.get("", "namespaces") else { return Ok(()) };
        let Some(found) = self.store.get(&Key::new("", "namespaces", "", namespace)) else {
            return Err(Failure::not_found(&namespaces, namespace));
        };
        if !metadata::deleting(found) {
            return Ok(());
        }
        let text = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut failure = Failure::forbidden(kind, name, &text);
        if let Some(details) = failure.details.as_mut() {
            details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
        }
        Err(failure)
    }

    /// What the server writes into a new object.
    fn begin(&mut self, kind: &Kind, object: &mut Value) {
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"] {
            metadata::remove(object, field);
        }
        if kind.generation {
            object["metadata"]["generation"] = json!(1);
        }
        object["metadata"]["uid"] = json!(self.seed.uuid());
        object["metadata"]["creationTimestamp"] = json!(clock::seconds(self.now()));
        metadata::tidy(object);
        // A Node or a volume registers itself together with its status; see the real strategies.
        let keeps_status =
            ["nodes", "namespaces", "persistentvolumes"].contains(&kind.plural.as_str());
        if kind.status
            && !keeps_status
            && let Some(map) = object.as_object_mut()
        {
            map.remove("status");
        }
        if kind.is("", "Namespace") {
            let name = metadata::text(object, "name").to_owned();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
        }
    }
}

/// What the server writes after the fields have found their owner: nobody owns these.
fn begin_status(kind: &Kind, object: &mut Value) {
    if kind.is("", "Namespace") {
        object["spec"]["finalizers"] = json!(["kubernetes"]);
        object["status"] = json!({ "phase": "Active" });
    }
    definition::begin(kind, object);
}
