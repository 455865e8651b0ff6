//! Children: what is wanted, how it compares with what is there, and the one write that mends it.
//!
//! The rules are design.md section 2, "Children" and "Nothing is sent if nothing would change".
//! Must not know any kind's meaning.

use serde_json::{Value, json};

use crate::compare::Path;
use crate::object::{Live, ObjectId};
use crate::ownership::is_held_by;
use crate::step::{Apply, Expect, Step};
use crate::{compare, digest, ownership};

/// Annotation with the digest of the last applied intent: tells that we stopped declaring a field.
pub const INTENT_ANNOTATION: &str = "steadfast.dev/intent";
/// Annotation on a pod template: digest of the rest of it, by which a pod tells what it is made from.
pub const TEMPLATE_ANNOTATION: &str = "steadfast.dev/template";
/// Label of everything that this operator makes.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Its value.
pub const MANAGED_BY: &str = "steadfast";
/// Annotation of a child that outlives its resource: uid of the resource that it belongs to, in the
/// place of an owner reference, which would make it go with the resource.
pub const RESOURCE_UID_ANNOTATION: &str = "steadfast.dev/resource-uid";
/// Label with the resource's name.
pub const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";

/// The resource that children belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Name of the resource.
    pub name: String,
    /// uid of the resource.
    pub uid: String,
    /// Field manager of its controller.
    pub manager: String,
}

/// A child as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// What it is called.
    pub id: ObjectId,
    /// The fields we declare, with `apiVersion`, `kind` and `metadata` (name, namespace, labels,
    /// owner references), without the intent annotation.
    pub intent: Value,
}

/// How a child stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// It does not exist; the step creates it.
    Missing(Step),
    /// It is as declared.
    Current,
    /// It differs; the step mends it.
    Outdated {
        /// The write.
        step: Step,
        /// Who changed a declared field, if it was not us who changed our mind.
        drift: Option<Drift>,
    },
    /// The name belongs to somebody else; never touched.
    Foreign {
        /// The owner, in words.
        owner: String,
    },
    /// It is being deleted; wait until it is gone.
    Terminating,
}

/// A declared field that another manager changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The field's path, `.spec.ports[port=5432].targetPort`.
    pub field: String,
    /// The manager that holds it, or `unknown`.
    pub manager: String,
}

impl Drift {
    /// Who changed the field at `path`, which `us` declares.
    pub fn of(live: &Live, path: &Path, us: &str) -> Self {
        let manager = ownership::holder(live, path, us);
        Self {
            field: path.spelled(&live.value),
            manager: manager.unwrap_or_else(|| "unknown".to_owned()),
        }
    }
}

impl Desired {
    /// The intent with its own digest in the annotation.
    pub fn sealed(&self) -> Value {
        self.sealed_with(&digest::of(&self.intent))
    }

    fn sealed_with(&self, digest: &str) -> Value {
        let mut intent = self.intent.clone();
        intent["metadata"]["annotations"][INTENT_ANNOTATION] = json!(digest);
        intent
    }

    /// Compares with what is there.
    pub fn stand(&self, live: Option<&Live>, owner: &Owner) -> Standing {
        let Some(live) = live else {
            return Standing::Missing(self.apply(Expect::Absent, "missing".to_owned()));
        };
        if let Some(stranger) = foreign(live, owner) {
            return Standing::Foreign { owner: stranger };
        }
        if live.deletion_time().is_some() {
            return Standing::Terminating;
        }
        let expect = Expect::Uid(live.uid().to_owned());
        match self.change(live, owner) {
            None => Standing::Current,
            Some((why, drift)) => Standing::Outdated { step: self.apply(expect, why), drift },
        }
    }

    /// What is to change and why, and who is behind it if we are not.
    ///
    /// The stored digest tells the two apart: while it is that of today's intent, a declared field
    /// that differs was changed by somebody; otherwise we changed our mind, which includes that we
    /// no longer declare a field.
    ///
    /// What differs although we hold it was changed on its way into the store, by an older server
    /// or an admission webhook. Sending it again would change nothing (fault catalogue G-28); the
    /// runner tells of it when it writes.
    fn change(&self, live: &Live, owner: &Owner) -> Option<(String, Option<Drift>)> {
        let digest = digest::of(&self.intent);
        let is_sent = live.annotation(INTENT_ANNOTATION) == Some(&digest);
        let not_kept = |path: &Path| is_sent && is_held_by(live, path, &owner.manager);
        let field = compare::difference_but(&self.sealed_with(&digest), &live.value, &not_kept)?;
        match live.annotation(INTENT_ANNOTATION) {
            Some(_) if is_sent => {
                let drift = Drift::of(live, &field, &owner.manager);
                Some((format!("{} differs, set by {}", drift.field, drift.manager), Some(drift)))
            }
            Some(_) => Some((self.change_of_mind(live), None)),
            None => Some(("what was last applied is not recorded".to_owned(), None)),
        }
    }

    /// Names the first field that is to change, not the annotation that always changes with it.
    fn change_of_mind(&self, live: &Live) -> String {
        match compare::difference(&self.intent, &live.value) {
            Some(field) => format!("{} is to change", field.spelled(&live.value)),
            None => "a field is no longer declared".to_owned(),
        }
    }

    fn apply(&self, expect: Expect, why: String) -> Step {
        Step::Apply(Apply { id: self.id.clone(), intent: self.sealed(), expect, why })
    }
}

/// Says whose the object is, when it is not ours. Ours: it carries our owner reference; or it has no
/// controller, and either names the resource's uid by annotation, whatever became of its labels, or
/// carries our labels with the resource's name (left by an orphaning delete, or handed over by a
/// person with these labels on purpose).
pub fn foreign(live: &Live, owner: &Owner) -> Option<String> {
    if live.is_owned_by(&owner.uid) {
        return None;
    }
    if let Some(other) = live.controller_owner() {
        return Some(format!("{} {} (uid {})", other.kind, other.name, other.uid));
    }
    if live.annotation(RESOURCE_UID_ANNOTATION) == Some(owner.uid.as_str()) {
        return None;
    }
    let ours = live.label(MANAGED_BY_LABEL) == Some(MANAGED_BY)
        && live.label(INSTANCE_LABEL) == Some(owner.name.as_str());
    if ours { None } else { Some("no owner: it was made by somebody else".to_owned()) }
}
