//! The verbs we use, each with a time-out, on objects named by [`ObjectId`].
//!
//! One request a call, never repeated here: a POST that was answered late may have worked.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::params::Preconditions;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, api::PropagationPolicy};
use phased::fact::Fate;
use phased::step::Propagation;
use phased::{KindRef, Live, ObjectId};
use serde_json::Value;

use crate::patience::patient;
use crate::trouble::{ApiError, classify};

/// A client with a bound on every call.
#[derive(Clone)]
pub struct Server {
    client: Client,
    patient: Client,
    timeout: Duration,
}

/// What of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The object but its status.
    Object,
    /// Its status.
    Status,
}

/// How an apply is sent.
pub struct ApplyMode<'a> {
    /// Field manager.
    pub manager: &'a str,
    /// What is written.
    pub part: Part,
    /// Whether fields of other managers are taken.
    pub force: bool,
}

/// What the API server says when a JSON patch cannot be applied, its own tests included.
const FAILED_TEST: &str = "the server rejected our request due to an error in our request";

/// The kind as kube names it.
pub fn resource_of(kind: KindRef) -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk(kind.group, kind.version, kind.kind),
        kind.plural,
    )
}

/// The API of one kind in one namespace, or in all when it is empty.
pub(crate) fn api(client: Client, kind: KindRef, namespace: &str) -> Api<DynamicObject> {
    let resource = resource_of(kind);
    if kind.namespaced && !namespace.is_empty() {
        Api::namespaced_with(client, namespace, &resource)
    } else {
        Api::all_with(client, &resource)
    }
}

impl Server {
    /// A server behind `client`; each call may take `timeout`.
    pub fn new(client: Client, timeout: Duration) -> Self {
        let patient = patient(&client, timeout);
        Self { client, patient, timeout }
    }

    /// The API of one kind in one namespace, or in all when it is empty, for lists and watches.
    pub fn streams(&self, kind: KindRef, namespace: &str) -> Api<DynamicObject> {
        api(self.patient.clone(), kind, namespace)
    }

    /// Pods of a namespace, for what only they can be asked: to run a command.
    pub(crate) fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn of(&self, id: &ObjectId) -> Api<DynamicObject> {
        api(self.client.clone(), id.kind, &id.namespace)
    }

    async fn bound<T>(
        &self,
        what: &str,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ApiError> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(classify(error)),
            Err(_) => Err(ApiError::timeout(what)),
        }
    }

    /// Reads one object live.
    ///
    /// # Errors
    /// Any but "not found", which is `None`.
    pub async fn get(&self, id: &ObjectId) -> Result<Option<Live>, ApiError> {
        let found = self.bound("get", self.of(id).get_opt(&id.name)).await?;
        found.map(|o| live(id.kind, o)).transpose()
    }

    /// Lists objects of a kind by field selector.
    ///
    /// # Errors
    /// As the server answers.
    pub async fn list(
        &self,
        kind: KindRef,
        namespace: &str,
        fields: &str,
    ) -> Result<Vec<Live>, ApiError> {
        let params = ListParams::default().fields(fields);
        let list =
            self.bound("list", api(self.client.clone(), kind, namespace).list(&params)).await?;
        list.items.into_iter().map(|o| live(kind, o)).collect()
    }

    /// Server-side apply.
    ///
    /// # Errors
    /// As the server answers.
    pub async fn apply(
        &self,
        id: &ObjectId,
        intent: &Value,
        mode: &ApplyMode<'_>,
    ) -> Result<Live, ApiError> {
        let params = parameters(mode);
        let api = self.of(id);
        let patch = Patch::Apply(intent);
        let applied = match mode.part {
            Part::Object => self.bound("apply", api.patch(&id.name, &params, &patch)).await,
            Part::Status => {
                self.bound("apply status", api.patch_status(&id.name, &params, &patch)).await
            }
        };
        live(id.kind, applied?)
    }

    /// Plain create.
    ///
    /// # Errors
    /// [`ApiError::LookAgain`] when the name is taken.
    pub async fn create(
        &self,
        id: &ObjectId,
        object: Value,
        manager: &str,
    ) -> Result<Live, ApiError> {
        let object: DynamicObject = serde_json::from_value(object)
            .map_err(|e| ApiError::of(Fate::WeAreWrong, "BadObject", e.to_string()))?;
        let params = PostParams { dry_run: false, field_manager: Some(manager.to_owned()) };
        let created = self.bound("create", self.of(id).create(&params, &object)).await?;
        live(id.kind, created)
    }

    /// JSON patch, with its own tests.
    ///
    /// # Errors
    /// As the server answers; a failed test is [`ApiError::LookAgain`].
    pub async fn json_patch(
        &self,
        id: &ObjectId,
        patch: json_patch::Patch,
        manager: &str,
    ) -> Result<Live, ApiError> {
        let params =
            PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let api = self.of(id);
        let patch = Patch::Json::<()>(patch);
        match self.bound("patch", api.patch(&id.name, &params, &patch)).await {
            Ok(object) => live(id.kind, object),
            // A failed test is answered with 422 and these words, without a cause that names a field.
            Err(ApiError::Trouble { trouble, .. })
                if trouble.message.contains(FAILED_TEST)
                    || trouble.message.contains("test operation") =>
            {
                Err(ApiError::LookAgain(trouble.message))
            }
            Err(error) => Err(error),
        }
    }

    /// Delete of one incarnation.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] when it is gone, [`ApiError::LookAgain`] when it is another one.
    pub async fn delete(&self, step: &phased::step::Delete) -> Result<(), ApiError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(step.uid.clone()),
                resource_version: step.resource_version.clone(),
            }),
            propagation_policy: Some(match step.propagation {
                Propagation::Background => PropagationPolicy::Background,
                Propagation::Foreground => PropagationPolicy::Foreground,
                Propagation::Orphan => PropagationPolicy::Orphan,
            }),
            ..DeleteParams::default()
        };
        let api = self.of(&step.id);
        self.bound("delete", api.delete(&step.id.name, &params)).await.map(|_| ())
    }
}

fn parameters(mode: &ApplyMode<'_>) -> PatchParams {
    let params = PatchParams::apply(mode.manager);
    if mode.force { params.force() } else { params }
}

/// A read object as the kernel sees it, with the type that list items of built-in kinds lack.
///
/// # Errors
/// When the metadata is unreadable.
pub fn live(kind: KindRef, object: DynamicObject) -> Result<Live, ApiError> {
    let wrong = |e: serde_json::Error| ApiError::of(Fate::WeAreWrong, "Unreadable", e.to_string());
    let mut value = serde_json::to_value(object).map_err(wrong)?;
    value["apiVersion"] = Value::String(kind.api_version());
    value["kind"] = Value::String(kind.kind.to_owned());
    Live::new(value).map_err(wrong)
}
