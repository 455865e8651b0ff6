//! How a connection to a named host is made.
//!
//! Inside a cluster its DNS is asked; outside of it, or where no DNS runs, a Service's name is
//! looked up in its EndpointSlices. Must not retry.

use std::io;

use futures::future::BoxFuture;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::trouble::classify;

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for T {}

/// Makes connections.
pub trait Dialer: Send + Sync + 'static {
    /// Connects to `host:port`.
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>>;
}

/// Asks DNS, as a pod in the cluster does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dns;

impl Dialer for Dns {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// Looks the name of a Service, or of a pod behind a headless one, up in EndpointSlices; other hosts
/// are left to DNS.
#[derive(Clone)]
pub struct EndpointSlices {
    client: kube::Client,
}

impl EndpointSlices {
    /// Reads EndpointSlices through `client`.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    async fn address(&self, name: &ClusterName<'_>, port: u16) -> io::Result<(String, u16)> {
        let ClusterName { pod, service, namespace } = *name;
        let api: Api<EndpointSlice> = Api::namespaced(self.client.clone(), namespace);
        let params = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
        let slices = api.list(&params).await;
        let slices = slices.map_err(|e| io::Error::other(classify(e)))?;
        slices.items.iter().find_map(|slice| ready_address(slice, pod, port)).ok_or_else(|| {
            let of = pod.map_or_else(String::new, |pod| format!(" of {pod}"));
            io::Error::new(
                io::ErrorKind::ConnectionRefused,
                format!("Service {namespace}/{service} has no ready endpoint{of}"),
            )
        })
    }
}

impl Dialer for EndpointSlices {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let target = match cluster_name(host) {
                Some(name) => self.address(&name, port).await?,
                None => (host.to_owned(), port),
            };
            let stream = TcpStream::connect((target.0.as_str(), target.1)).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// A name of the cluster's DNS.
#[derive(Debug, PartialEq, Eq)]
struct ClusterName<'a> {
    pod: Option<&'a str>,
    service: &'a str,
    namespace: &'a str,
}

/// `[<pod>.]<service>.<namespace>.svc[.<domain>]` taken apart.
fn cluster_name(host: &str) -> Option<ClusterName<'_>> {
    let parts: Vec<&str> = host.split('.').collect();
    match parts.as_slice() {
        [service, namespace, "svc", ..] => Some(ClusterName { pod: None, service, namespace }),
        [pod, service, namespace, "svc", ..] => {
            Some(ClusterName { pod: Some(pod), service, namespace })
        }
        _ => None,
    }
}

/// The first ready address of a slice, or that of a pod, ready or not. The slice's port is the target of the Service's port; with
/// one port there is no doubt, with more the one of the same number is taken.
fn ready_address(slice: &EndpointSlice, pod: Option<&str>, port: u16) -> Option<(String, u16)> {
    let endpoint = slice.endpoints.iter().flatten().find(|endpoint| match pod {
        Some(pod) => endpoint.hostname.as_deref() == Some(pod),
        None => endpoint.conditions.as_ref().and_then(|c| c.ready).unwrap_or(true),
    })?;
    let ports = slice.ports.as_deref().unwrap_or_default();
    let wanted = i32::from(port);
    let target = match ports {
        [only] => only.port.unwrap_or(wanted),
        several => several.iter().filter_map(|p| p.port).find(|p| *p == wanted)?,
    };
    Some((endpoint.addresses.first()?.clone(), u16::try_from(target).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_cluster_are_looked_up() {
        let name = |pod, service, namespace| Some(ClusterName { pod, service, namespace });
        assert_eq!(cluster_name("db.shop.svc.cluster.local"), name(None, "db", "shop"));
        assert_eq!(cluster_name("db.shop.svc"), name(None, "db", "shop"));
        assert_eq!(cluster_name("db-1.db.shop.svc"), name(Some("db-1"), "db", "shop"));
        assert_eq!(cluster_name("db.example.com"), None);
        assert_eq!(cluster_name("localhost"), None);
    }

    #[test]
    fn an_endpoint_that_is_not_ready_is_not_dialled() {
        let slice: EndpointSlice = serde_json::from_value(serde_json::json!({
            "addressType": "IPv4", "metadata": {"name": "s"},
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": false}, "hostname": "db-0"},
                {"addresses": ["10.0.0.2"], "conditions": {"ready": true}, "hostname": "db-1"}],
            "ports": [{"port": 5432}]}))
        .unwrap();
        let address = |pod| ready_address(&slice, pod, 5432);
        assert_eq!(address(None), Some(("10.0.0.2".to_owned(), 5432)));
        assert_eq!(address(Some("db-0")), Some(("10.0.0.1".to_owned(), 5432)), "asked by name");
        assert_eq!(address(Some("db-7")), None);
    }
}
