//! What nearly every test puts into a control plane first: a namespace, and custom resource definitions.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tokio::time::Instant;

use crate::control_plane::{ControlPlane, SHORT_WAIT};
use crate::readiness;

/// Answer format that lists every kind of every group at once; the built-in controllers read the same.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

impl ControlPlane {
    /// Creates a namespace whose name starts with `prefix` and waits until pods can be created in it.
    ///
    /// # Errors
    /// The server refuses, or no default service account appears.
    pub async fn create_namespace(&self, prefix: &str) -> Result<String> {
        let client = self.client().await?;
        let mut namespace = Namespace::default();
        namespace.metadata.generate_name = Some(format!("{prefix}-"));
        let namespaces = Api::<Namespace>::all(client.clone());
        let created = namespaces.create(&PostParams::default(), &namespace).await;
        let name = created.context("create a namespace")?.name_any();
        if self.controllers.lock().await.is_some() {
            let deadline = Instant::now() + SHORT_WAIT;
            let ask = || readiness::service_account_exists(&client, &name);
            readiness::wait_for("the namespace's service account", deadline, || Ok(()), ask)
                .await?;
        }
        Ok(name)
    }

    /// Applies custom resource definitions and waits until they are served. If one is new, the controllers are
    /// replaced: the garbage collector looks for new kinds only now and then (a child was seen to outlive its
    /// owner by 40 seconds), but knows all that are there when it starts.
    ///
    /// # Errors
    /// The server refuses one of them, or does not serve it in time.
    pub async fn install_crds(&self, definitions: &[CustomResourceDefinition]) -> Result<()> {
        // Two tests that share this control plane must not both find the same definition missing.
        let mut controllers = self.controllers.lock().await;
        let client = self.client().await?;
        let mut any_new = false;
        for definition in definitions {
            any_new |= !is_served(&client, definition).await;
            apply(&client, definition).await?;
        }
        for definition in definitions {
            let what = definition.name_any();
            let ask = || is_served(&client, definition);
            readiness::wait_for(&what, Instant::now() + SHORT_WAIT, || Ok(()), ask).await?;
        }
        if any_new {
            self.replace_controllers(&mut controllers).await?;
        }
        Ok(())
    }
}

async fn apply(client: &Client, definition: &CustomResourceDefinition) -> Result<()> {
    let name = definition.name_any();
    let parameters = PatchParams::apply("steadfast-testbed").force();
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let applied = definitions.patch(&name, &parameters, &Patch::Apply(definition)).await;
    applied.with_context(|| format!("apply custom resource definition {name}")).map(drop)
}

/// Whether discovery lists every served version of the kind.
async fn is_served(client: &Client, definition: &CustomResourceDefinition) -> bool {
    let request = http::Request::get("/apis").header(http::header::ACCEPT, AGGREGATED);
    let Ok(request) = request.body(Vec::new()) else { return false };
    let Ok(answer) = client.request::<Value>(request).await else { return false };
    let wanted = definition.spec.versions.iter().filter(|version| version.served);
    wanted.into_iter().all(|version| lists(&answer, definition, &version.name))
}

fn lists(answer: &Value, definition: &CustomResourceDefinition, version: &str) -> bool {
    let list = |value: &Value, field: &str| value[field].as_array().cloned().unwrap_or_default();
    list(answer, "items")
        .iter()
        .filter(|group| group["metadata"]["name"] == *definition.spec.group)
        .flat_map(|group| list(group, "versions"))
        .filter(|found| found["version"] == *version)
        .flat_map(|found| list(&found, "resources"))
        .any(|resource| resource["resource"] == *definition.spec.names.plural)
}
