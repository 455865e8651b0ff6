//! Connections inside the cluster: pod addresses, Service addresses and names, outside hosts.
//!
//! Must not keep connections; it only finds who answers.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value;
use tokio::io::DuplexStream;

use super::World;
use crate::Store;
use crate::builtin::{Builtin, field};
use crate::exec::{Command, Ending, Exec};
use crate::external::Network;
use crate::external::network::{Directory, Reach, Unreached};
use crate::external::postgres::{Server, psql};
use crate::stream::{Connection, Dial, Dialed};

impl World {
    /// Connects to a pod address, a Service's cluster address, a cluster DNS name
    /// (`service.namespace.svc`, `pod.service.namespace.svc`, with or without a domain), or a host
    /// set in the model's network. Needs a running tokio runtime.
    ///
    /// # Errors
    /// `ConnectionRefused` where nobody answers, `NotFound` for unknown names, `TimedOut` at once
    /// where packets would be dropped (the caller waits out its own time limit).
    pub fn dial(&self, host: &str, port: u16) -> io::Result<DuplexStream> {
        if self.builtin().model.network.knows(host, port) {
            return self.builtin().model.network.connect(host, port);
        }
        let (address, port) = self.cluster.with(|core| resolve(&core.store, host, port))?;
        self.builtin().model.network.connect(&address, port)
    }

    /// The same, waiting for ever where packets would be dropped, as a real connection does.
    ///
    /// # Errors
    /// As [`World::dial`], without `TimedOut`.
    pub async fn connect(&self, host: &str, port: u16) -> io::Result<DuplexStream> {
        match self.dial(host, port) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => std::future::pending().await,
            other => other,
        }
    }

    /// Connects to a port inside a pod, as a port-forward does: the client is 127.0.0.1 there.
    ///
    /// # Errors
    /// `NotFound` for a pod without an address, `ConnectionRefused` where nobody listens.
    pub fn forward(&self, namespace: &str, pod: &str, port: u16) -> io::Result<DuplexStream> {
        let address = self
            .get("Pod", namespace, pod)
            .map(|pod| field::text(&pod, "/status/podIP").to_owned())
            .filter(|address| !address.is_empty())
            .ok_or(io::ErrorKind::NotFound)?;
        self.builtin().model.network.forward(&address, port)
    }
}

/// The world as programs inside it see it; it must not keep the world alive.
struct Inside {
    cluster: crate::Cluster,
    builtin: Weak<Mutex<Builtin>>,
}

impl Directory for Inside {
    fn resolve(&self, host: &str, port: u16) -> Result<(String, u16), Unreached> {
        let found = self.cluster.with(|core| resolve(&core.store, host, port));
        found.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Unreached::Unknown,
            _ => Unreached::Refused(String::new()),
        })
    }

    fn look(&self, look: &mut dyn FnMut(&Network)) {
        if let Some(builtin) = self.builtin.upgrade() {
            let builtin = builtin.lock().unwrap_or_else(PoisonError::into_inner);
            look(&builtin.model.network);
        }
    }
}

/// Commands run in the models' containers: `psql`, where a server runs.
struct Containers {
    builtin: Weak<Mutex<Builtin>>,
}

impl Exec for Containers {
    fn exec(&self, command: Command) -> Ending {
        let address = field::text(&command.pod, "/status/podIP").to_owned();
        let server = self.builtin.upgrade().and_then(|builtin| {
            let builtin = builtin.lock().unwrap_or_else(PoisonError::into_inner);
            builtin.model.network.attached::<Server>(&address)
        });
        let Command { container, words, streams, .. } = command;
        Box::pin(async move {
            match server {
                Some(server) => psql::run(server, words, streams).await,
                None => Err(format!("container not found (\"{container}\")")),
            }
        })
    }
}

impl World {
    /// Lets the programs of the models connect to each other, and commands run beside them.
    pub(super) fn join(&self) {
        let builtin = Arc::downgrade(&self.builtin);
        let containers = Containers { builtin: builtin.clone() };
        self.cluster.with(|core| core.exec = Some(Arc::new(containers)));
        let inside = Inside { cluster: self.cluster.clone(), builtin };
        let nudged = self.nudged.clone();
        let mut held = self.builtin();
        let disturbed = held.disturbed.clone();
        // Programs end while the controllers run, so that nothing may be locked here.
        let waker = Arc::new(move || {
            disturbed.store(true, Ordering::Relaxed);
            nudged.notify_one();
        });
        let network = &mut held.model.network;
        let reach = Reach::new(Arc::new(inside), network.links.clone());
        network.join(reach, waker);
    }
}

/// Port-forwards of the API server end in the models.
impl Dial for World {
    fn dial(&self, pod: &Value, port: u16) -> Dialed {
        let stream = self.forward(field::namespace(pod), field::name(pod), port);
        Box::pin(async move { stream.map(|stream| Box::new(stream) as Box<dyn Connection>) })
    }
}

fn resolve(store: &Store, host: &str, port: u16) -> io::Result<(String, u16)> {
    if host.parse::<std::net::IpAddr>().is_ok() {
        let mut services = store.list("", "services", None).map(|(_, service)| service);
        return match services.find(|one| field::text(one, "/spec/clusterIP") == host) {
            Some(service) => through(store, service, port),
            None => Ok((host.to_owned(), port)),
        };
    }
    let labels: Vec<&str> = host.trim_end_matches('.').split('.').collect();
    let svc = labels.iter().position(|label| *label == "svc");
    let unknown =
        || io::Error::new(io::ErrorKind::NotFound, format!("lookup {host}: no such host"));
    let svc = svc.filter(|at| *at == 2 || *at == 3).ok_or_else(unknown)?;
    let (name, namespace) = (labels[svc - 2], labels[svc - 1]);
    let mut services = store.list("", "services", Some(namespace)).map(|(_, service)| service);
    let service = services.find(|one| field::name(one) == name).ok_or_else(unknown)?;
    if svc == 3 {
        let endpoint = endpoints(store, service).into_iter().find(|(_, endpoint)| {
            field::text(endpoint, "/hostname") == labels[0] && usable(endpoint)
        });
        let (_, endpoint) = endpoint.ok_or_else(unknown)?;
        return Ok((address(endpoint), port));
    }
    through(store, service, port)
}

/// One of the Service's ready endpoints, with the port that it serves there.
fn through(store: &Store, service: &Value, port: u16) -> io::Result<(String, u16)> {
    let headless = field::text(service, "/spec/clusterIP") == "None";
    let ports = field::list(service, "/spec/ports").iter();
    let entry = ports.clone().find(|one| one["port"] == port);
    if entry.is_none() && !headless {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let name = entry.map_or("", |one| field::text(one, "/name"));
    for (slice, endpoint) in endpoints(store, service) {
        if !usable(endpoint) {
            continue;
        }
        if headless {
            return Ok((address(endpoint), port));
        }
        let mut served = field::list(slice, "/ports").iter();
        let served = served.find(|one| field::text(one, "/name") == name);
        if let Some(number) = served.and_then(|one| one["port"].as_u64()) {
            return Ok((address(endpoint), u16::try_from(number).unwrap_or(port)));
        }
    }
    Err(io::ErrorKind::ConnectionRefused.into())
}

fn endpoints<'a>(store: &'a Store, service: &Value) -> Vec<(&'a Value, &'a Value)> {
    let slices = store.list("discovery.k8s.io", "endpointslices", Some(field::namespace(service)));
    slices
        .map(|(_, slice)| slice)
        .filter(|slice| {
            let labels = field::labels(slice);
            labels.get("kubernetes.io/service-name").map(String::as_str)
                == Some(field::name(service))
        })
        .flat_map(|slice| field::list(slice, "/endpoints").iter().map(move |one| (slice, one)))
        .collect()
}

fn usable(endpoint: &Value) -> bool {
    endpoint["conditions"]["ready"] != false
}

fn address(endpoint: &Value) -> String {
    field::list(endpoint, "/addresses").first().and_then(Value::as_str).unwrap_or("").to_owned()
}
