//! How a control plane may differ from the default one.

use std::net::Ipv4Addr;
use std::time::Duration;

/// Settings of a control plane. The default is what nearly every test wants.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the API server listens. Loopback by default; nodes reach it by their network's address only.
    pub address: Ipv4Addr,
    /// Run the built-in controllers (kube-controller-manager). Without them there is no default service
    /// account, no StatefulSet pod and no garbage collection.
    pub controllers: bool,
    /// Run the controllers that judge nodes by their heartbeats. Off by default: with no kubelet they would
    /// mark the stand-in's node as lost and evict its pods.
    pub node_lifecycle: bool,
    /// Further arguments of kube-apiserver, after ours, so that they win.
    pub api_server_arguments: Vec<String>,
    /// Further arguments of kube-controller-manager, after ours.
    pub controller_manager_arguments: Vec<String>,
    /// How long the whole start may take before it is an error.
    pub start_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: Ipv4Addr::LOCALHOST,
            controllers: true,
            node_lifecycle: false,
            api_server_arguments: Vec::new(),
            controller_manager_arguments: Vec::new(),
            // About four seconds are usual; a machine shared by many builds can take ten times that.
            start_timeout: Duration::from_secs(120),
        }
    }
}
