//! The simulated API server's state and the shapes of its writes.
//!
//! `Core` is the one door to the store: HTTP verbs and built-in controllers write through the same
//! methods (in `verbs`), so nobody can skip a rule. Nothing here awaits.

use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::exec::Exec;
use crate::faults::Faults;
use crate::kind::{Kind, Kinds};
use crate::seed::Seed;
use crate::status::Failure;
use crate::store::{Key, Store};

/// Who writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// User name, as authentication would give it.
    pub user: String,
    /// Field manager.
    pub manager: String,
}

impl Actor {
    /// An actor from user and field manager.
    pub fn new(user: &str, manager: &str) -> Actor {
        Actor { user: user.into(), manager: manager.into() }
    }
}

/// What to do about fields that the schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and warn; the server's default.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Check and answer, but store nothing.
    pub dry_run: bool,
    /// Unknown fields, and fields that are named twice.
    pub field_validation: FieldValidation,
}

/// A subresource that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sub {
    /// `/status`.
    Status,
    /// `/scale`; the object is then a Scale.
    Scale,
    /// `/finalize` of a namespace.
    Finalize,
    /// `/resize` of a pod.
    Resize,
}

impl Sub {
    /// Its name in paths and managedFields.
    pub fn name(self) -> &'static str {
        match self {
            Sub::Status => "status",
            Sub::Scale => "scale",
            Sub::Finalize => "finalize",
            Sub::Resize => "resize",
        }
    }
}

/// A patch by type.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// RFC 6902.
    Json(Value),
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' strategic merge; built-in kinds only.
    Strategic(Value),
    /// Server-side apply.
    Apply {
        /// The applied configuration.
        object: Value,
        /// Take fields over from other managers.
        force: bool,
    },
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents go later.
    Background,
    /// Dependents go first.
    Foreground,
    /// Dependents stay.
    Orphan,
}

/// Options of delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Delete only this incarnation.
    pub uid: Option<String>,
    /// Delete only this version.
    pub resource_version: Option<String>,
    /// Dependents; none means background.
    pub propagation: Option<Propagation>,
    /// Seconds that a pod gets to end; none means what its spec says.
    pub grace_period: Option<i64>,
    /// Check and answer, but delete nothing.
    pub dry_run: bool,
}

/// What an admission hook is asked about.
#[derive(Clone, Debug)]
pub struct Review {
    /// Who writes.
    pub actor: Actor,
    /// What is being done.
    pub operation: Operation,
    /// Key of the object; the name may still be empty when it is to be generated.
    pub key: Key,
    /// Subresource, if the request names one.
    pub subresource: Option<Sub>,
    /// The object as stored, for updates and deletes.
    pub old: Option<Arc<Value>>,
    /// Nothing will be stored; hooks must not reserve anything.
    pub dry_run: bool,
}

/// Kinds of write, as admission sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object, by update or patch.
    Update,
    /// A deletion; the object passed is the one to be deleted.
    Delete,
}

/// Admission in the server's process: quota, service addresses, defaults that need the store.
/// Called after defaulting and before validation; may change the object.
pub type Admission =
    Arc<dyn Fn(&mut Core, &Review, &Kind, &mut Value) -> Result<(), Failure> + Send + Sync>;

/// The API server's whole state.
pub struct Core {
    /// Objects.
    pub store: Store,
    /// Served kinds.
    pub kinds: Kinds,
    /// Time.
    pub clock: Clock,
    /// Randomness.
    pub seed: Seed,
    /// Faults and the request log.
    pub faults: Faults,
    /// Admission hooks in order.
    pub admission: Vec<Admission>,
    /// Runs commands in containers; none where nothing can.
    pub exec: Option<Arc<dyn Exec>>,
    /// `Warning` headers of the request being answered; the service empties it.
    pub warnings: Vec<String>,
}

impl Core {
    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The object at `key`, as stored.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.store.get(key)
    }

    /// The namespaces that every cluster has.
    fn bootstrap(&mut self) {
        let Some(kind) = self.kinds.get("", "namespaces") else { return };
        let by = Actor::new("system:apiserver", "kube-apiserver");
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let object = serde_json::json!({ "metadata": { "name": name } });
            // The store is empty and the names are valid, so there is nothing to refuse.
            let _ = self.create(&by, &kind, "", object, &Options::default());
        }
    }

    /// Runs the admission hooks over `object`.
    pub(crate) fn review(
        &mut self,
        review: &Review,
        kind: &Kind,
        object: &mut Value,
    ) -> Result<(), Failure> {
        for hook in self.admission.clone() {
            hook(self, review, kind, object)?;
        }
        Ok(())
    }
}

/// A simulated cluster's API. Clones share one state.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Mutex<Core>>,
    changed: Arc<Notify>,
}

impl Cluster {
    /// A cluster with the namespaces every cluster has, nothing else.
    pub fn new(seed: u64) -> Cluster {
        Cluster::with_clock(seed, Clock::default())
    }

    /// The same, showing another time.
    pub fn with_clock(seed: u64, clock: Clock) -> Cluster {
        let seed = Seed::new(seed);
        let mut core = Core {
            store: Store::default(),
            kinds: Kinds::default(),
            clock,
            faults: Faults::new(seed.fork("faults")),
            seed,
            admission: Vec::new(),
            exec: None,
            warnings: Vec::new(),
        };
        core.bootstrap();
        Cluster { inner: Arc::new(Mutex::new(core)), changed: Arc::new(Notify::new()) }
    }

    /// Runs `work` on the state and wakes everybody who waits for a change if there was one.
    pub fn with<R>(&self, work: impl FnOnce(&mut Core) -> R) -> R {
        let mut core = self.lock();
        let before = core.store.version();
        let answer = work(&mut core);
        let moved = core.store.version() != before;
        drop(core);
        if moved {
            self.changed.notify_waiters();
        }
        answer
    }

    /// Notified after every change of the store.
    pub fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // A test that panicked while it held the lock has already failed; the state is still whole.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
