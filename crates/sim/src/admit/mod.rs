//! Defaults and validation of built-in kinds. (Stub of the API owner; the APPLY owner fills it.)

use serde_json::Value;

use crate::kind::Kind;
use crate::status::Cause;

/// Fills in defaults as kube-apiserver does.
pub fn default(_kind: &Kind, _object: &mut Value) {}

/// Everything wrong with `object`.
pub fn validate(_kind: &Kind, _object: &Value, _old: Option<&Value>) -> Vec<Cause> {
    Vec::new()
}

/// The form in which the server stores it.
pub fn normalize(_kind: &Kind, _object: &mut Value) {}
