//! CRD structural schemas. (Stub of the API owner; the APPLY owner fills it.)

use std::sync::Arc;

use serde_json::Value;

use super::Schema;
use crate::status::Cause;

/// One compiled version of a CRD.
#[derive(Clone, Debug)]
pub struct CompiledVersion {
    /// Version name.
    pub name: String,
    /// Typed schema.
    pub schema: Arc<Schema>,
}

/// Checks and compiles all versions of a CRD.
pub fn compile(crd: &Value) -> Result<Vec<CompiledVersion>, Vec<Cause>> {
    Ok(crd["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|version| CompiledVersion {
            name: version["name"].as_str().unwrap_or("").to_owned(),
            schema: Arc::new(Schema::any()),
        })
        .collect())
}

impl CompiledVersion {
    /// Drops unknown fields; returns their paths.
    pub fn prune(&self, _object: &mut Value) -> Vec<String> {
        Vec::new()
    }

    /// Fills in defaults.
    pub fn default(&self, _object: &mut Value) {}

    /// Everything wrong with `new`.
    pub fn validate(&self, _new: &Value, _old: Option<&Value>) -> Vec<Cause> {
        Vec::new()
    }
}
