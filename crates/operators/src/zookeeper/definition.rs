//! The custom resource definition, as it is installed.
//!
//! Nothing of a resource is required, not even the spec: the replaced operator's definition asked for
//! nothing either.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps,
};
use kube_core::CustomResourceExt;
use serde_json::json;

use super::api::ZookeeperCluster;

/// The definition.
pub fn definition() -> CustomResourceDefinition {
    let mut definition = ZookeeperCluster::crd();
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut().and_then(|s| s.open_api_v3_schema.as_mut());
        if let Some(schema) = schema {
            ask_for_nothing(schema);
        }
    }
    definition
}

/// Takes the spec off the list of required fields. An absent one gets an empty one, so that the
/// defaults below it are filled in.
fn ask_for_nothing(schema: &mut JSONSchemaProps) {
    schema.required = None;
    let spec = schema.properties.as_mut().and_then(|fields| fields.get_mut("spec"));
    if let Some(spec) = spec {
        spec.default = Some(JSON(json!({})));
    }
}
