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

/// Looks a Service's name up in its EndpointSlices; other hosts are left to DNS.
#[derive(Clone)]
pub struct EndpointSlices {
    client: kube::Client,
}

impl EndpointSlices {
    /// Reads EndpointSlices through `client`.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    async fn address(
        &self,
        service: &str,
        namespace: &str,
        port: u16,
    ) -> io::Result<(String, u16)> {
        let api: Api<EndpointSlice> = Api::namespaced(self.client.clone(), namespace);
        let params = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
        let slices = api.list(&params).await;
        let slices = slices.map_err(|e| io::Error::other(classify(e)))?;
        slices.items.iter().find_map(|slice| ready_address(slice, port)).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::ConnectionRefused,
                format!("Service {namespace}/{service} has no ready endpoint"),
            )
        })
    }
}

impl Dialer for EndpointSlices {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let target = match service_of(host) {
                Some((service, namespace)) => self.address(service, namespace, port).await?,
                None => (host.to_owned(), port),
            };
            let stream = TcpStream::connect((target.0.as_str(), target.1)).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// `<service>.<namespace>.svc[.<domain>]` taken apart.
fn service_of(host: &str) -> Option<(&str, &str)> {
    let mut parts = host.splitn(4, '.');
    let (service, namespace, svc) = (parts.next()?, parts.next()?, parts.next()?);
    (svc == "svc").then_some((service, namespace))
}

/// The first ready address of a slice. The slice's port is the target of the Service's port; with
/// one port there is no doubt, with more the one of the same number is taken.
fn ready_address(slice: &EndpointSlice, port: u16) -> Option<(String, u16)> {
    let endpoint = slice
        .endpoints
        .iter()
        .flatten()
        .find(|e| e.conditions.as_ref().and_then(|c| c.ready).unwrap_or(true))?;
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
    fn only_names_of_services_are_looked_up() {
        assert_eq!(service_of("db.shop.svc.cluster.local"), Some(("db", "shop")));
        assert_eq!(service_of("db.shop.svc"), Some(("db", "shop")));
        assert_eq!(service_of("db.example.com"), None);
        assert_eq!(service_of("localhost"), None);
    }

    #[test]
    fn an_endpoint_that_is_not_ready_is_not_dialled() {
        let slice: EndpointSlice = serde_json::from_value(serde_json::json!({
            "addressType": "IPv4", "metadata": {"name": "s"},
            "endpoints": [
                {"addresses": ["10.0.0.1"], "conditions": {"ready": false}},
                {"addresses": ["10.0.0.2"], "conditions": {"ready": true}}],
            "ports": [{"port": 5432}]}))
        .unwrap();
        assert_eq!(ready_address(&slice, 5432), Some(("10.0.0.2".to_owned(), 5432)));
    }
}
