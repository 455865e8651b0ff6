//! A controller with its type forgotten: what commands that serve every kind work with.
//!
//! Must not decide: each method hands through to the [`Controller`].

use std::marker::PhantomData;

use crate::controller::{Controller, Past, Want, Watch};
use crate::fact::{Question, Reply};
use crate::ladder::LadderDoc;
use crate::object::{KindRef, Live};
use crate::observed::Observed;
use crate::plan::Plan;

/// A snapshot whose resource is not parsed yet; it is in `root`.
pub type Seen = Observed<()>;

/// A controller of some kind.
pub trait Subject: Send + Sync {
    /// Its short name.
    fn name(&self) -> &'static str;
    /// The kind of its custom resource.
    fn kind(&self) -> KindRef;
    /// Its ladder.
    fn ladder(&self) -> LadderDoc;
    /// What it watches.
    fn watches(&self) -> Vec<Watch>;
    /// What its snapshots hold.
    fn wants(&self, root: &Live) -> Vec<Want>;
    /// Its decision; that for an unreadable resource, if the root does not parse.
    fn plan(&self, seen: &Seen) -> Plan;
    /// The reply that it hopes for; see [`Controller::suppose`].
    fn suppose(&self, seen: &Seen, question: &Question, past: &Past<'_>) -> Option<Reply>;
}

/// The subject that a controller is.
pub struct Of<C>(PhantomData<fn() -> C>);

impl<C: Controller> Of<C> {
    /// It, to be referred to for ever.
    pub const SUBJECT: &'static dyn Subject = &Self(PhantomData);
}

impl<C: Controller> Subject for Of<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn kind(&self) -> KindRef {
        C::KIND
    }

    fn ladder(&self) -> LadderDoc {
        C::ladder()
    }

    fn watches(&self) -> Vec<Watch> {
        C::watches()
    }

    fn wants(&self, root: &Live) -> Vec<Want> {
        C::wants(root)
    }

    fn plan(&self, seen: &Seen) -> Plan {
        match parsed::<C>(seen) {
            Ok(observed) => C::plan(&observed),
            Err(error) => C::unreadable(&seen.root, &error, &seen.settings, seen.now),
        }
    }

    fn suppose(&self, seen: &Seen, question: &Question, past: &Past<'_>) -> Option<Reply> {
        C::suppose(&parsed::<C>(seen).ok()?, question, past)
    }
}

fn parsed<C: Controller>(seen: &Seen) -> Result<Observed<C::Resource>, String> {
    let resource = seen.root.read().map_err(|error| error.to_string())?;
    Ok(Observed {
        resource,
        root: seen.root.clone(),
        objects: seen.objects.clone(),
        facts: seen.facts.clone(),
        troubles: seen.troubles.clone(),
        now: seen.now,
        settings: seen.settings.clone(),
    })
}
