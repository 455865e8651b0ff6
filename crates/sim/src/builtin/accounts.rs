//! What every namespace gets: the ServiceAccount `default` and the ConfigMap of root certificates.
//!
//! Must not make tokens.

use jiff::Timestamp;
use serde_json::json;

use super::door::{CONFIG_MAPS, Door, NAMESPACES, SERVICE_ACCOUNTS};
use super::{Controller, Model, field};
use crate::Core;

/// The controller of namespace basics; it holds no state of its own.
#[derive(Default)]
pub(super) struct Accounts;

impl Controller for Accounts {
    fn watches(&self) -> &'static [&'static str] {
        &["namespaces", "serviceaccounts", "configmaps"]
    }

    fn sync(&mut self, core: &mut Core, _: &mut Model) -> Option<Timestamp> {
        let mut door =
            Door::controller(core, "service-account-controller", "service-account-controller");
        for namespace in door.list(NAMESPACES, None) {
            if field::deleting(&namespace) {
                continue;
            }
            let name = field::name(&namespace).to_owned();
            if door.get(SERVICE_ACCOUNTS, &name, "default").is_none() {
                let account = json!({
                    "apiVersion": "v1",
                    "kind": "ServiceAccount",
                    "metadata": { "name": "default", "namespace": name },
                });
                let _ = door.create(SERVICE_ACCOUNTS, &name, account);
            }
            if door.get(CONFIG_MAPS, &name, "kube-root-ca.crt").is_none() {
                let map = json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {
                        "name": "kube-root-ca.crt",
                        "namespace": name,
                        "annotations": {
                            "kubernetes.io/description": "Contains a CA bundle that can be used to \
                             verify the kube-apiserver when using internal endpoints such as the \
                             internal service IP or kubernetes.default.svc. No other usage is \
                             guaranteed across distributions of Kubernetes clusters.",
                        },
                    },
                    "data": { "ca.crt": "model" },
                });
                let _ = door.create(CONFIG_MAPS, &name, map);
            }
        }
        None
    }
}
