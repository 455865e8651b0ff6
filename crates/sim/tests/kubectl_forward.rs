//! The machine's kubectl forwards a port of a simulated pod.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

mod console;

use std::process::Stdio;
use std::time::Duration;

use console::{Console, line};
use serde_json::json;
use sim::{Actor, Options, Sub};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A listener that greets and then repeats what it hears; its port.
async fn repeating() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = socket.split();
                write.write_all(b"hello").await.unwrap();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    port
}

#[tokio::test]
async fn a_port_is_forwarded() {
    let Some(console) = Console::open("forward").await else { return };
    let port = repeating().await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web", "namespace": "default" },
        "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
    });
    console.kubectl(&["apply", "-f", &console.file("pod.json", &pod)]).await;
    console.cluster.with(|core| {
        let kind = core.kinds.get("", "pods").unwrap();
        let key = kind.key("default", "web");
        let mut pod = core.get(&key).unwrap().clone();
        pod["status"] = json!({ "phase": "Running", "podIP": "127.0.0.1" });
        let by = Actor::new("kubelet", "kubelet");
        core.update(&by, &kind, &key, pod, Some(Sub::Status), &Options::default()).unwrap();
    });
    let (open, closed) = (format!(":{port}"), ":1".to_owned());
    let mut child = console
        .command(&["port-forward", "pod/web", &open, &closed])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut local = Vec::new();
    while local.len() < 2 {
        let said = line(&mut lines).await;
        if let Some(from) = said.strip_prefix("Forwarding from 127.0.0.1:") {
            local.push(from.split_once(' ').unwrap().0.parse::<u16>().unwrap());
        }
    }
    for number in 0..3 {
        let mut socket = TcpStream::connect(("127.0.0.1", local[0])).await.unwrap();
        // More than any buffer on the way holds.
        let said = vec![b'a' + number; 3_000_000];
        let (mut read, mut write) = socket.split();
        let mut heard = vec![0; 5 + said.len()];
        let (sent, received) = tokio::join!(write.write_all(&said), read.read_exact(&mut heard));
        sent.unwrap();
        received.unwrap();
        assert!(heard.starts_with(b"hello") && heard[5..] == said, "connection {number}");
    }
    let mut refused = TcpStream::connect(("127.0.0.1", local[1])).await.unwrap();
    assert_eq!(refused.read(&mut [0; 1]).await.unwrap(), 0, "nobody listens there");
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let next = tokio::time::timeout(Duration::from_secs(60), errors.next_line()).await;
    let error = next.expect("kubectl says why within a minute").unwrap().unwrap();
    assert!(error.contains("error forwarding port 1 to pod web"), "{error}");
}
