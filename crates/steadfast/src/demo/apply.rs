//! Applies the documents of a manifest, as `kubectl apply --server-side` does.

use anyhow::Context;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::discovery::{self, Scope};
use kube::{Client, ResourceExt};

/// An object that was applied.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    pub(crate) resource: kube::core::ApiResource,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Applies every document, in order.
pub(crate) async fn manifest(client: &Client, text: &str) -> anyhow::Result<Vec<Applied>> {
    let documents: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(text).context("the YAML cannot be read")?;
    let mut applied = Vec::new();
    for document in documents.into_iter().filter(|d| !d.is_null()) {
        applied.push(one(client, document).await?);
    }
    anyhow::ensure!(!applied.is_empty(), "the manifest holds no object");
    Ok(applied)
}

async fn one(client: &Client, document: serde_json::Value) -> anyhow::Result<Applied> {
    let object: DynamicObject =
        serde_json::from_value(document).context("a document is not a Kubernetes object")?;
    let types = object.types.clone().context("a document lacks apiVersion or kind")?;
    let name = object.metadata.name.clone().context("a document lacks metadata.name")?;
    let gvk = kube::core::GroupVersionKind::try_from(&types)?;
    let (resource, capabilities) = discovery::pinned_kind(client, &gvk)
        .await
        .with_context(|| format!("kind {} of {} is not served", types.kind, types.api_version))?;
    let namespaced = capabilities.scope == Scope::Namespaced;
    let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
    let api: Api<DynamicObject> = if namespaced {
        Api::namespaced_with(client.clone(), &namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    };
    let parameters =
        PatchParams { field_manager: Some("kubectl".to_owned()), ..PatchParams::default() };
    api.patch(&name, &parameters, &Patch::Apply(&object))
        .await
        .map_err(|e| anyhow::anyhow!("{} {name}: {}", types.kind, message(&e)))?;
    let namespace = if namespaced { namespace } else { String::new() };
    Ok(Applied { resource, namespace, name })
}

fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
