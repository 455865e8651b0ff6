//! How a built-in controller reads the store and writes through `Core`'s one door.
//!
//! Must not bypass `Core`: every write is admitted, versioned and tracked like a client's.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::field;
use crate::{Actor, Core, DeleteOptions, Failure, Key, Kind, Options, Sub};

/// A resource of the API by group and plural name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resource {
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
}

macro_rules! resources {
    ($($name:ident = $group:literal $plural:literal;)*) => {
        $(pub(crate) const $name: Resource = Resource { group: $group, plural: $plural };)*
    };
}

resources! {
    PODS = "" "pods";
    NODES = "" "nodes";
    CLAIMS = "" "persistentvolumeclaims";
    VOLUMES = "" "persistentvolumes";
    SECRETS = "" "secrets";
    CONFIG_MAPS = "" "configmaps";
    SERVICES = "" "services";
    SERVICE_ACCOUNTS = "" "serviceaccounts";
    NAMESPACES = "" "namespaces";
    EVENTS = "" "events";
    QUOTAS = "" "resourcequotas";
    STORAGE_CLASSES = "storage.k8s.io" "storageclasses";
    PRIORITY_CLASSES = "scheduling.k8s.io" "priorityclasses";
    STATEFUL_SETS = "apps" "statefulsets";
    DEPLOYMENTS = "apps" "deployments";
    REPLICA_SETS = "apps" "replicasets";
    REVISIONS = "apps" "controllerrevisions";
    BUDGETS = "policy" "poddisruptionbudgets";
    SLICES = "discovery.k8s.io" "endpointslices";
}

/// One controller's view of the cluster, and its identity.
pub(crate) struct Door<'a> {
    pub(crate) core: &'a mut Core,
    actor: Actor,
    component: &'static str,
}

impl<'a> Door<'a> {
    /// A controller inside kube-controller-manager: its own service account, the manager's field owner.
    pub(crate) fn controller(core: &'a mut Core, account: &str, component: &'static str) -> Self {
        let user = format!("system:serviceaccount:kube-system:{account}");
        Self { core, actor: Actor { user, manager: "kube-controller-manager".into() }, component }
    }

    /// A component with its own user and field owner (scheduler, kubelet).
    pub(crate) fn component(core: &'a mut Core, user: &str, component: &'static str) -> Self {
        let actor = Actor { user: user.to_owned(), manager: component.to_owned() };
        Self { core, actor, component }
    }

    pub(crate) fn actor(&self) -> Actor {
        self.actor.clone()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.core.now()
    }

    pub(crate) fn kind(&self, resource: Resource) -> Result<Arc<Kind>, Failure> {
        let known = self.core.kinds.get(resource.group, resource.plural);
        known.ok_or_else(|| Failure::internal(format!("unknown resource {}", resource.plural)))
    }

    /// Objects as they are now, to be changed.
    pub(crate) fn list(&self, resource: Resource, namespace: Option<&str>) -> Vec<Value> {
        let found = self.core.store.list(resource.group, resource.plural, namespace);
        found.map(|(_, object)| object.clone()).collect()
    }

    /// Objects as they are now, only to be looked at.
    pub(crate) fn shared(&self, resource: Resource, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let store = &self.core.store;
        let found = store.list(resource.group, resource.plural, namespace);
        found.filter_map(|(key, _)| store.share(key)).collect()
    }

    pub(crate) fn get(&self, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        self.core.store.get(&key(resource, namespace, name)).cloned()
    }

    pub(crate) fn create(
        &mut self,
        resource: Resource,
        namespace: &str,
        object: Value,
    ) -> Result<Value, Failure> {
        let kind = self.kind(resource)?;
        let actor = self.actor.clone();
        self.core.create(&actor, &kind, namespace, object, &Options::default())
    }

    pub(crate) fn update(&mut self, resource: Resource, object: Value) -> Result<Value, Failure> {
        self.write(resource, object, None)
    }

    /// Binds a pod to a node, which no update may do.
    pub(crate) fn bind(&mut self, pod: &Value, node: &str) -> Result<(), Failure> {
        let key = key(PODS, field::namespace(pod), field::name(pod));
        let actor = self.actor();
        self.core.bind(&actor, &key, node)
    }

    pub(crate) fn update_status(
        &mut self,
        resource: Resource,
        object: Value,
    ) -> Result<Value, Failure> {
        self.write(resource, object, Some(Sub::Status))
    }

    fn write(
        &mut self,
        resource: Resource,
        object: Value,
        sub: Option<Sub>,
    ) -> Result<Value, Failure> {
        let kind = self.kind(resource)?;
        let key = key(resource, field::namespace(&object), field::name(&object));
        let actor = self.actor.clone();
        self.core.update(&actor, &kind, &key, object, sub, &Options::default())
    }

    /// Deletes exactly this object (uid precondition), in the background.
    pub(crate) fn delete(&mut self, resource: Resource, object: &Value) -> Result<(), Failure> {
        self.delete_with(resource, object, DeleteOptions::default())
    }

    pub(crate) fn delete_with(
        &mut self,
        resource: Resource,
        object: &Value,
        mut options: DeleteOptions,
    ) -> Result<(), Failure> {
        let kind = self.kind(resource)?;
        let key = key(resource, field::namespace(object), field::name(object));
        options.uid = Some(field::uid(object).to_owned());
        let actor = self.actor.clone();
        self.core.delete(&actor, &kind, &key, &options).map(|_| ())
    }

    /// Records an Event as client-go's recorder does: equal ones are counted on one object.
    pub(crate) fn event(&mut self, about: &Value, kind: &str, reason: &str, message: &str) {
        let namespace = match field::namespace(about) {
            "" => "default".to_owned(),
            other => other.to_owned(),
        };
        let now = field::stamp(self.now());
        if let Some(mut known) = self.known_event(&namespace, about, reason, message) {
            known["count"] = json!(field::number(&known, "/count", 1) + 1);
            known["lastTimestamp"] = json!(now);
            // A lost Event is what the real recorder accepts too.
            let _ = self.update(EVENTS, known);
            return;
        }
        let nanos = self.now().as_nanosecond();
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": format!("{}.{:x}", field::name(about), nanos),
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": field::text(about, "/apiVersion"),
                "kind": field::text(about, "/kind"),
                "name": field::name(about),
                "namespace": field::namespace(about),
                "uid": field::uid(about),
                "resourceVersion": field::text(about, "/metadata/resourceVersion"),
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": { "component": self.component },
            "reportingComponent": self.component,
        });
        self.create_event(&namespace, event);
    }

    /// Two Events of one instant about one object differ in the name's last digits.
    fn create_event(&mut self, namespace: &str, mut event: Value) {
        let base = field::name(&event).to_owned();
        for attempt in 0..100 {
            if attempt > 0 {
                event["metadata"]["name"] = json!(format!("{base}{attempt:02x}"));
            }
            match self.create(EVENTS, namespace, event.clone()) {
                Err(failure) if failure.reason == "AlreadyExists" => {}
                _ => return,
            }
        }
    }

    fn known_event(
        &self,
        namespace: &str,
        about: &Value,
        reason: &str,
        message: &str,
    ) -> Option<Value> {
        // Events are named after what they are about.
        let events =
            self.core.store.named(&key(EVENTS, namespace, &format!("{}.", field::name(about))));
        let same = |event: &&Value| {
            event["involvedObject"]["uid"] == field::uid(about)
                && event["reason"] == reason
                && event["message"] == message
                && event["source"]["component"] == self.component
        };
        events.map(|(_, event)| event).find(same).cloned()
    }
}

/// The store's key of an object.
pub(crate) fn key(resource: Resource, namespace: &str, name: &str) -> Key {
    Key {
        group: resource.group.to_owned(),
        plural: resource.plural.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}
