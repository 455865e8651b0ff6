//! A person with kubectl, as far as it matters who owns which field.

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams, ValidationDirective};
use serde_json::Value;

/// `kubectl apply` of a resource of ours, client-side: a create or a merge patch, with the manifest remembered.
///
/// # Errors
/// What the server refuses.
pub(crate) async fn apply(client: &kube::Client, manifest: &Value) -> kube::Result<()> {
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    let api = resources(client, manifest);
    match api.get_opt(name).await? {
        Some(live) => {
            let live = serde_json::to_value(live).map_err(kube::Error::SerdeError)?;
            let patch = foresight::edit::patch(manifest, &live);
            let params = PatchParams {
                field_manager: Some("kubectl-client-side-apply".to_owned()),
                field_validation: Some(ValidationDirective::Strict),
                ..PatchParams::default()
            };
            api.patch(name, &params, &Patch::Merge(&patch)).await?;
        }
        None => {
            let object = serde_json::from_value(foresight::edit::remembered(manifest))
                .map_err(kube::Error::SerdeError)?;
            let params = PostParams {
                field_manager: Some("kubectl-client-side-apply".to_owned()),
                ..PostParams::default()
            };
            api.create(&params, &object).await?;
        }
    }
    Ok(())
}

/// `kubectl apply --server-side` by a manager of that name.
///
/// # Errors
/// What the server refuses, conflicts among it.
pub(crate) async fn apply_as(
    client: &kube::Client,
    manifest: &Value,
    manager: &str,
) -> kube::Result<()> {
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    let patch = Patch::Apply(manifest);
    resources(client, manifest).patch(name, &PatchParams::apply(manager), &patch).await.map(|_| ())
}

fn resources(client: &kube::Client, manifest: &Value) -> Api<DynamicObject> {
    let namespace = manifest["metadata"]["namespace"].as_str().unwrap_or("default");
    let row = steadfast::kinds::of(manifest).ok().flatten().expect("a kind of ours");
    let resource = runner::api::resource_of(row.kind);
    Api::namespaced_with(client.clone(), namespace, &resource)
}
