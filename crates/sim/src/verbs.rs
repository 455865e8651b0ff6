//! The verbs of the API on `Core`: the one door for every write.
//!
//! Each verb finishes without awaiting, so that a request is either done or not begun.

mod binding;
mod convert;
mod create;
mod decode;
mod definition;
mod delete;
mod metadata;
mod patch;
mod read;
mod scale;
mod update;

pub(crate) use convert::shown;
pub(crate) use read::{Listing, Page, Selection};
pub(crate) use scale::of as scale_of;

use std::sync::Arc;

use serde_json::Value;

use crate::apply::{self, Writer};
use crate::clock;
use crate::cluster::{Actor, Core, Sub};
use crate::kind::Kind;
use crate::status::{Cause, Failure};
use crate::store::Key;
use crate::{admit, schema};

/// Who records the fields of a write in managedFields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tracking {
    /// This write does, as operation Update.
    Update,
    /// Server-side apply already did.
    Applied,
}

impl Core {
    /// The object at `key` in the version of `kind`.
    fn live(&self, kind: &Kind, key: &Key) -> Result<Value, Failure> {
        match self.store.get(key) {
            Some(stored) => Ok(shown(kind, stored)),
            None => Err(Failure::not_found(kind, &key.name)),
        }
    }

    /// Fills in what the server fills in, in the form in which it stores it.
    fn complete(&self, kind: &Kind, object: &mut Value) {
        match &kind.compiled {
            Some(compiled) => compiled.default(object),
            None => {
                admit::default(kind, object);
                admit::normalize(kind, object);
            }
        }
    }

    /// Everything wrong with `object`, as one failure; `causes` is what has been found before.
    fn validate(
        &self,
        kind: &Kind,
        object: &Value,
        old: Option<&Value>,
        mut causes: Vec<Cause>,
    ) -> Result<(), Failure> {
        causes.extend(admit::validate(kind, object, old));
        if kind.custom {
            causes.extend(scale::causes(kind, object));
        }
        if let Some(compiled) = &kind.compiled {
            causes.extend(compiled.validate(object, old));
        }
        if kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            causes.extend(definition::name_cause(object));
            if let Err(found) = schema::crd::compile(object) {
                causes.extend(found);
            }
        }
        if causes.is_empty() {
            return Ok(());
        }
        let name = metadata::text(object, "name");
        let name = if name.is_empty() { metadata::text(object, "generateName") } else { name };
        Err(Failure::invalid(kind, name, causes))
    }

    fn track(
        &self,
        by: &Actor,
        kind: &Kind,
        sub: Option<Sub>,
        before: Option<&Value>,
        after: &mut Value,
    ) {
        apply::track(&kind.schema, before, after, &self.writer(by, kind, sub, false));
    }

    fn writer(&self, by: &Actor, kind: &Kind, sub: Option<Sub>, force: bool) -> Writer {
        Writer {
            manager: by.manager.clone(),
            force,
            subresource: sub.map(|sub| sub.name().to_owned()),
            api_version: kind.api_version(),
            time: clock::seconds(self.now()),
        }
    }

    /// Stores `object` and lets whatever depends on it at once follow.
    fn keep(&mut self, kind: &Kind, key: Key, object: Value) -> Value {
        let stored = self.store.put(key, convert::stored(kind, object));
        self.follow_definition(kind, &stored);
        shown(kind, &stored)
    }

    /// Takes an object out of the store for good; answers it as it was.
    fn vanish(&mut self, kind: &Kind, key: &Key) -> Option<Arc<Value>> {
        let gone = self.store.remove(key)?;
        self.forget_definition(kind, &gone);
        if kind.custom {
            self.finish_definition(&kind.group, &kind.plural);
        }
        Some(gone)
    }
}
