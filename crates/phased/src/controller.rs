//! What a controller provides, and what it is given.
//!
//! Implementations live in crate `operators`; they are pure.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fact::{Question, Reply, Trouble};
use crate::ladder::LadderDoc;
use crate::object::{KindRef, Live, ObjectId};
use crate::observed::Observed;
use crate::plan::Plan;
use crate::step::Action;

/// One kind of custom resource and its decisions.
pub trait Controller: Send + Sync + 'static {
    /// The resource, as users write it.
    type Resource: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// Short name, such as `database`: field manager `steadfast/<name>`, label of metrics.
    const NAME: &'static str;

    /// The kind of the custom resource.
    const KIND: KindRef;

    /// The ladder as data, for documentation and checks.
    fn ladder() -> LadderDoc;

    /// Kinds to watch, and how their objects lead back to a resource.
    fn watches() -> Vec<Watch>;

    /// Which watched objects a snapshot for `resource` holds.
    fn wants(root: &Live) -> Vec<Want>;

    /// Decides. Must be a function of its argument alone.
    fn plan(observed: &Observed<Self::Resource>) -> Plan;

    /// Whether the spec of a resource that is not deleted permits that data go: volumes of standbys
    /// that are removed.
    fn may_delete_data(_resource: &Self::Resource) -> bool {
        false
    }

    /// Decides for a stored resource that does not parse: says so in its status, and lets a
    /// deletion through (fault catalogue G-17, PG-02).
    fn unreadable(root: &Live, error: &str, settings: &Settings, now: jiff::Timestamp) -> Plan;

    /// The reply that a question to the application gets once all is as the plan of this snapshot
    /// wants it, for forecasts: they cannot ask. What the application holds follows from where the
    /// forecast began and from what it has done since. `None` where nothing can be supposed; a
    /// forecast ends there.
    fn suppose(_: &Observed<Self::Resource>, _: &Question, _: &Past<'_>) -> Option<Reply> {
        None
    }

    /// Decides when a pass could not even be observed or panicked: the status tells the trouble.
    fn troubled(root: &Live, trouble: &Trouble, now: jiff::Timestamp) -> Plan;
}

/// What lies behind a forecast when it supposes a reply.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    /// The snapshot where the forecast began: the resource as it is to be, with the status that it had,
    /// and the objects as they were.
    pub seen: &'a Observed<()>,
    /// Actions that were carried out on the way, in order.
    pub done: &'a [Action],
}

impl Past<'_> {
    /// Whether an action of that name was carried out.
    pub fn did(&self, name: &str) -> bool {
        self.done.iter().any(|action| action.name == name)
    }
}

/// The field manager of a controller.
pub fn manager<C: Controller>() -> String {
    format!("steadfast/{}", C::NAME)
}

/// A kind to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The kind.
    pub kind: KindRef,
    /// Label selector of the watch, so that memory is bounded by what concerns us.
    pub selector: Option<String>,
    /// How an object leads to the resource that must look again.
    pub trigger: Trigger,
}

/// How a watched object leads to a resource in its own namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// By an owner reference of the controller's kind (any version of its group).
    Owner,
    /// By the value of this label, which is the resource's name.
    Label(&'static str),
    /// By its own name: the resource's name followed by this suffix, whatever its labels. For
    /// objects that a person may bring along. Such an object wakes, but it is kept in no snapshot
    /// unless another watch of its kind selects it; plans read it live.
    NameSuffix(&'static str),
}

/// A set of objects that a snapshot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// This one, if the watch shows it.
    Named(ObjectId),
    /// All of a kind in a namespace that carry these labels.
    Labelled {
        /// The kind.
        kind: KindRef,
        /// The namespace.
        namespace: String,
        /// Labels and their values.
        labels: BTreeMap<String, String>,
    },
}

/// What the operator was started with, as far as decisions depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// DNS domain of the cluster, such as `cluster.local`.
    pub cluster_domain: String,
    /// Host patterns that external dependencies may name (`*` matches within a label sequence).
    pub allow_dependencies: Vec<String>,
    /// How long each phase is held so that it can be watched, in seconds; 0 in production.
    pub phase_dwell_seconds: u32,
    /// How often a settled resource is verified again, in seconds.
    pub verify_every_seconds: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cluster_domain: "cluster.local".to_owned(),
            allow_dependencies: vec!["*.svc".to_owned(), "*.svc.cluster.local".to_owned()],
            phase_dwell_seconds: 0,
            verify_every_seconds: 300,
        }
    }
}
