//! Port-forward through a `kube::Client`, in process: bytes both ways, and a port nobody listens on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use sim::Cluster;
use sim::stream::{Connection, Dial, Dialed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Pods that answer on port 5432 with their name and whatever they are told.
struct Echo;

impl Dial for Echo {
    fn dial(&self, pod: &Value, port: u16) -> Dialed {
        let name = pod["metadata"]["name"].as_str().unwrap_or("").to_owned();
        Box::pin(async move {
            if port != 5432 {
                return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
            }
            let (near, mut far) = tokio::io::duplex(1024);
            tokio::spawn(async move {
                far.write_all(name.as_bytes()).await.unwrap();
                let mut buffer = [0; 64];
                while let Ok(count @ 1..) = far.read(&mut buffer).await {
                    far.write_all(&buffer[..count]).await.unwrap();
                }
            });
            Ok(Box::new(near) as Box<dyn Connection>)
        })
    }
}

async fn pods(cluster: &Cluster) -> Api<Pod> {
    let service = cluster.service().dialing(Arc::new(Echo));
    let api: Api<Pod> = Api::default_namespaced(Client::new(service, "default"));
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "db-0" },
        "spec": { "containers": [{ "name": "db", "image": "db:1" }] },
    });
    api.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    api
}

#[tokio::test(start_paused = true)]
async fn bytes_go_both_ways() {
    let cluster = Cluster::new(1);
    let mut forwarder = pods(&cluster).await.portforward("db-0", &[5432]).await.unwrap();
    let mut stream = forwarder.take_stream(5432).unwrap();
    let mut greeting = [0; 4];
    stream.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"db-0");
    stream.write_all(b"select 1").await.unwrap();
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"select 1");
    drop(stream);
    forwarder.join().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refused_port_and_a_missing_pod_say_so() {
    let cluster = Cluster::new(1);
    let api = pods(&cluster).await;
    let mut forwarder = api.portforward("db-0", &[80]).await.unwrap();
    let error = forwarder.take_error(80).unwrap().await.unwrap();
    assert!(error.contains("error forwarding port 80"), "{error}");
    assert!(api.portforward("db-1", &[5432]).await.is_err());
}

#[tokio::test]
async fn over_http_the_pod_is_reached_at_its_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"over tcp").await.unwrap();
    });
    let cluster = Cluster::new(1);
    pods(&cluster).await;
    cluster.with(|core| {
        let kind = core.kinds.get("", "pods").unwrap();
        let key = kind.key("default", "db-0");
        let mut pod = core.get(&key).unwrap().clone();
        pod["status"]["podIP"] = json!("127.0.0.1");
        let by = sim::Actor::new("kubelet", "kubelet");
        let status = Some(sim::Sub::Status);
        core.update(&by, &kind, &key, pod, status, &sim::Options::default()).unwrap();
    });
    let server = sim::server::Server::start(&cluster).await.unwrap();
    let address = format!("http://{}", server.address()).parse().unwrap();
    let client = Client::try_from(kube::Config::new(address)).unwrap();
    let api: Api<Pod> = Api::default_namespaced(client);
    let mut forwarder = api.portforward("db-0", &[port]).await.unwrap();
    let mut greeting = [0; 8];
    forwarder.take_stream(port).unwrap().read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"over tcp");
}
