//! HTTP/1.1 on loopback, for kubectl and for programs in other processes.
//!
//! Plain text and without authentication: it binds to loopback addresses only.

use std::net::SocketAddr;

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::service::ApiService;

/// A running server; it stops when dropped.
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves `cluster` on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(cluster: &Cluster) -> std::io::Result<Server> {
        Server::serve(cluster.service(), SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Serves `service` on `address`, which must be a loopback address.
    ///
    /// # Errors
    /// When the address is no loopback address or can't be bound.
    pub async fn serve(service: ApiService, address: SocketAddr) -> std::io::Result<Server> {
        if !address.ip().is_loopback() {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                "the simulated server has no authentication and listens on loopback only",
            ));
        }
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(accept(listener, service));
        Ok(Server { address, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig for it.
    pub fn kubeconfig(&self) -> String {
        crate::kubeconfig::kubeconfig(self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, service: ApiService) {
    // Connections end with the server: the set aborts them when it is dropped.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        while connections.try_join_next().is_some() {}
        let service = TowerToHyperService::new(service.clone());
        connections.spawn(async move {
            // A client that goes away in mid-request is no error of ours.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .with_upgrades()
                .await;
        });
    }
}
