//! The verbs of the API on `Core`: the one door for every write.

use serde_json::Value;

use crate::cluster::{Actor, Core, DeleteOptions, Options, Patch, Sub};
use crate::kind::Kind;
use crate::status::Failure;
use crate::store::Key;

impl Core {
    /// Creates an object; answers it as stored.
    pub fn create(
        &mut self,
        _by: &Actor,
        _kind: &Kind,
        _namespace: &str,
        _object: Value,
        _options: &Options,
    ) -> Result<Value, Failure> {
        Err(Failure::not_implemented("create"))
    }

    /// Replaces an object or one of its subresources; answers it as stored.
    pub fn update(
        &mut self,
        _by: &Actor,
        _kind: &Kind,
        _key: &Key,
        _object: Value,
        _sub: Option<Sub>,
        _options: &Options,
    ) -> Result<Value, Failure> {
        Err(Failure::not_implemented("update"))
    }

    /// Patches an object or one of its subresources; answers it as stored.
    pub fn patch(
        &mut self,
        _by: &Actor,
        _kind: &Kind,
        _key: &Key,
        _patch: Patch,
        _sub: Option<Sub>,
        _options: &Options,
    ) -> Result<Value, Failure> {
        Err(Failure::not_implemented("patch"))
    }

    /// Deletes an object, or starts to; answers what the server would.
    pub fn delete(
        &mut self,
        _by: &Actor,
        _kind: &Kind,
        _key: &Key,
        _options: &DeleteOptions,
    ) -> Result<Value, Failure> {
        Err(Failure::not_implemented("delete"))
    }
}
