//! What the name server needs in the cluster: the right to look, and a Service that pods know it by.
//!
//! The name server runs beside the kubelet and not in a pod, so its Service has no selector and its address is
//! written by hand.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::settings::DNS_ADDRESS;

/// The user that the name server is.
pub(crate) const USER: &str = "system:coredns";
const MANAGER: &str = "steadfast-testbed";

/// Writes the role and the Service.
pub(crate) async fn introduce(client: &Client, address: Ipv4Addr) -> Result<()> {
    apply(&Api::<ClusterRole>::all(client.clone()), USER, &role()).await?;
    apply(&Api::<ClusterRoleBinding>::all(client.clone()), USER, &binding()).await?;
    apply(&system::<Service>(client), "kube-dns", &service()).await?;
    apply(&system::<EndpointSlice>(client), "kube-dns", &endpoints(address)).await
}

fn system<Kind>(client: &Client) -> Api<Kind>
where
    Kind: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), "kube-system")
}

/// Writes an object, whoever wrote it before.
pub(crate) async fn apply<Kind>(objects: &Api<Kind>, name: &str, wanted: &Value) -> Result<()>
where
    Kind: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let parameters = PatchParams::apply(MANAGER).force();
    let applied = objects.patch(name, &parameters, &Patch::Apply(wanted)).await;
    applied.with_context(|| format!("write {name}")).map(drop)
}

fn role() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": USER},
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["services", "pods", "namespaces", "nodes"],
                "verbs": ["get", "list", "watch"],
            },
            {
                "apiGroups": ["discovery.k8s.io"],
                "resources": ["endpointslices"],
                "verbs": ["list", "watch"],
            },
        ],
    })
}

fn binding() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": USER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    })
}

fn ports() -> Value {
    json!([
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ])
}

fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "labels": {"k8s-app": "kube-dns"}},
        "spec": {"clusterIP": DNS_ADDRESS, "ports": ports()},
    })
}

fn endpoints(address: Ipv4Addr) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kube-dns", "labels": {"kubernetes.io/service-name": "kube-dns"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address.to_string()], "conditions": {"ready": true}}],
        "ports": ports(),
    })
}
