//! The edit as a dry run: the server makes it, checks it, and changes nothing.
//!
//! Every write of `plan` is sent here, and each carries `dryRun=All`.

use kube::api::{Api, DynamicObject, Patch, PatchParams, ValidationDirective};
use phased::{Live, ObjectId};
use serde_json::Value;

use crate::link::Link;

/// How the manifest would be applied.
#[derive(Clone, Debug)]
pub struct Manner {
    /// By the server, by field ownership; else by kubectl, as a merge patch.
    pub server_side: bool,
    /// With fields of other managers.
    pub force: bool,
    /// Field manager.
    pub manager: String,
}

impl Manner {
    /// As `kubectl apply` does, by this manager unless it is kubectl's own.
    pub fn new(server_side: bool, force: bool, manager: Option<&str>) -> Self {
        let kubectl = if server_side { "kubectl" } else { "kubectl-client-side-apply" };
        Self { server_side, force, manager: manager.unwrap_or(kubectl).to_owned() }
    }

    fn parameters(&self) -> PatchParams {
        PatchParams {
            dry_run: true,
            force: self.server_side && self.force,
            field_manager: Some(self.manager.clone()),
            field_validation: Some(ValidationDirective::Strict),
        }
    }
}

/// What the server would store.
///
/// # Errors
/// The server's refusal, or that none answers.
pub(super) async fn dry_run(
    link: &Link,
    id: &ObjectId,
    manifest: &Value,
    live: Option<&Live>,
    manner: &Manner,
) -> Result<Value, kube::Error> {
    let api: Api<DynamicObject> = link.viewer.api(id.kind, &id.namespace);
    let answer = match (manner.server_side, live) {
        (true, _) => {
            let patch = Patch::Apply(manifest);
            api.patch(&id.name, &manner.parameters(), &patch).await
        }
        (false, Some(live)) => {
            let patch = foresight::edit::patch(manifest, &live.value);
            api.patch(&id.name, &manner.parameters(), &Patch::Merge(&patch)).await
        }
        (false, None) => create(link, &api, manifest, manner).await,
    }?;
    serde_json::to_value(answer).map_err(kube::Error::SerdeError)
}

/// A create with strict validation, which the client's own parameters do not offer.
async fn create(
    link: &Link,
    api: &Api<DynamicObject>,
    manifest: &Value,
    manner: &Manner,
) -> Result<DynamicObject, kube::Error> {
    let body = foresight::edit::remembered(manifest).to_string().into_bytes();
    let url = format!(
        "{}?dryRun=All&fieldValidation=Strict&fieldManager={}",
        api.resource_url(),
        phased::step::encoded(manner.manager.as_bytes())
    );
    let request = http::Request::post(url)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(kube::Error::HttpError)?;
    link.viewer.client().request(request).await
}
