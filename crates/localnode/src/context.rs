//! What all parts of one node share.

use crate::address::AddressBook;
use crate::assembly::Assembly;
use crate::events::Recorder;
use crate::log_file::LogFile;
use crate::process::Starter;
use crate::programs::Programs;
use crate::volume::claims::ClaimFolders;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared by the workers of all pods.
pub(crate) struct Context {
    /// The only way to the API.
    pub(crate) client: Client,
    /// This node's name.
    pub(crate) node_name: String,
    /// Folder of everything that the node writes.
    pub(crate) state_dir: PathBuf,
    /// Starts processes.
    pub(crate) starter: Starter,
    /// What can be run.
    pub(crate) programs: Programs,
    /// Writes events.
    pub(crate) events: Recorder,
    addresses: Mutex<AddressBook>,
    claims: Mutex<ClaimFolders>,
    windows: Mutex<BTreeMap<ContainerKey, Window>>,
}

/// Namespace, pod and container.
pub(crate) type ContainerKey = (String, String, String);

/// What can be seen of a container from outside.
#[derive(Clone)]
pub(crate) struct Window {
    /// The current or last run's log.
    pub(crate) log: LogFile,
    /// How to run something in the container, once it has been put together.
    pub(crate) assembly: Arc<Assembly>,
}

impl Context {
    /// Puts the shared parts together.
    pub(crate) fn new(
        client: Client,
        node_name: String,
        state_dir: PathBuf,
        parts: (Starter, Programs, Recorder, AddressBook),
    ) -> Self {
        let (starter, programs, events, addresses) = parts;
        let claims = Mutex::new(ClaimFolders::new(&state_dir.join("c")));
        Self {
            client,
            node_name,
            state_dir,
            starter,
            programs,
            events,
            addresses: Mutex::new(addresses),
            claims,
            windows: Mutex::default(),
        }
    }

    /// The addresses in use.
    pub(crate) fn addresses(&self) -> MutexGuard<'_, AddressBook> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folders of persistent volumes.
    pub(crate) fn claims(&self) -> MutexGuard<'_, ClaimFolders> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The containers that can be looked at.
    pub(crate) fn windows(&self) -> MutexGuard<'_, BTreeMap<ContainerKey, Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address behind a cluster host name, as far as the node can tell without cluster DNS.
    pub(crate) fn resolve(&self, pod: &Pod, name: &str) -> Option<Ipv4Addr> {
        let key = address_key(pod, name)?;
        self.addresses().address_of(&key).ok()
    }
}

/// The key of the address that a host name stands for: a pod's under its headless Service.
///
/// A StatefulSet pod's address is held for its name, so it is known before the pod runs.
pub(crate) fn address_key(pod: &Pod, name: &str) -> Option<String> {
    let own_namespace = pod.metadata.namespace.as_deref()?;
    let own_subdomain = pod.spec.as_ref().and_then(|spec| spec.subdomain.as_deref());
    let (front, in_cluster) = match name.split_once(".svc") {
        Some((front, rest)) if rest.is_empty() || rest.starts_with('.') => (front, true),
        _ => (name, false),
    };
    let labels: Vec<&str> = front.split('.').collect();
    match (labels.as_slice(), in_cluster) {
        ([host, _, namespace], true) => Some(format!("{namespace}/{host}")),
        ([host, subdomain], false) if Some(*subdomain) == own_subdomain => {
            Some(format!("{own_namespace}/{host}"))
        }
        ([host, subdomain, namespace], false)
            if Some(*subdomain) == own_subdomain && *namespace == own_namespace =>
        {
            Some(format!("{namespace}/{host}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pods_are_told_from_other_words() {
        let pod = serde_json::from_value(
            serde_json::json!({"metadata": {"name": "db-1", "namespace": "ns"},
            "spec": {"subdomain": "db-headless", "containers": []}}),
        )
        .expect("a pod");
        for (name, expected) in [
            ("db-0.db-headless.ns.svc.cluster.local", Some("ns/db-0")),
            ("db-0.other.far.svc", Some("far/db-0")),
            ("db-0.db-headless", Some("ns/db-0")),
            ("db-0.db-headless.ns", Some("ns/db-0")),
            ("postgresql.conf", None),
            ("db.ns.svc", None),
            ("a.b.c.svcx", None),
            ("1.2.3.4", None),
        ] {
            assert_eq!(address_key(&pod, name).as_deref(), expected, "{name}");
        }
    }
}
