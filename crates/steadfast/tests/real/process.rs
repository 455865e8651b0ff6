//! The operator as the program that is installed, behind a proxy that ends it with SIGKILL at a
//! chosen write, before the API server sees the write or after it carried it out.

use std::convert::Infallible;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{Bench, printed_rules};

/// Where the program is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The write never reaches the API server.
    Before(usize),
    /// The write is carried out, and its answer is lost.
    After(usize),
}

/// Counts the writes of the program, and ends it at one of them.
#[derive(Default)]
struct Blade {
    cut: Mutex<Option<Cut>>,
    writes: Mutex<usize>,
    child: Mutex<Option<Child>>,
    fell: Notify,
}

impl Blade {
    /// Counts a write; whether the program is to end before it, and whether after it.
    fn count(&self) -> (bool, bool) {
        let mut writes = self.writes.lock().expect("never poisoned");
        *writes += 1;
        let cut = *self.cut.lock().expect("never poisoned");
        (cut == Some(Cut::Before(*writes)), cut == Some(Cut::After(*writes)))
    }

    fn fall(&self) {
        if let Some(child) = self.child.lock().expect("never poisoned").as_mut() {
            child.start_kill().expect("it runs");
        }
        self.fell.notify_one();
    }
}

/// The program, to be started again and again.
pub(crate) struct Program {
    blade: Arc<Blade>,
    kubeconfig: tempfile::NamedTempFile,
    namespace: String,
    proxy: JoinHandle<()>,
}

impl Program {
    /// Grants the printed rules, and starts the proxy; the program does not run yet.
    pub(crate) async fn prepare(bench: &Bench) -> Self {
        let mut rules = printed_rules();
        // Outside the cluster no DNS answers (docs/install.md).
        rules.push(json!({"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"],
            "verbs": ["list"]}));
        let client = bench.grant("steadfast", &rules).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let blade = Arc::new(Blade::default());
        let proxy = tokio::spawn(serve(listener, client, Arc::clone(&blade)));
        let mut kubeconfig = tempfile::NamedTempFile::new().expect("a file");
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: c,\
             clusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}],\
             users: [{{name: c, user: {{}}}}],\
             contexts: [{{name: c, context: {{cluster: c, user: c}}}}]}}"
        );
        std::io::Write::write_all(&mut kubeconfig, text.as_bytes()).expect("written");
        Self { blade, kubeconfig, namespace: bench.namespace.clone(), proxy }
    }

    /// Starts the program, to be ended at `cut`.
    pub(crate) fn start(&self, cut: Option<Cut>) {
        *self.blade.cut.lock().expect("never poisoned") = cut;
        *self.blade.writes.lock().expect("never poisoned") = 0;
        let child = Command::new(env!("CARGO_BIN_EXE_steadfast"))
            .args(["run", "--reach", "endpoints", "--http", "none"])
            .args(["--namespace", &self.namespace])
            .env("KUBECONFIG", self.kubeconfig.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        *self.blade.child.lock().expect("never poisoned") = Some(child);
    }

    /// Returns when the program has been ended at its cut.
    pub(crate) async fn fallen(&self) {
        self.blade.fell.notified().await;
    }

    /// Ends the program now, and waits for its end; the writes that it had sent.
    pub(crate) async fn end(&self) -> usize {
        let child = self.blade.child.lock().expect("never poisoned").take();
        if let Some(mut child) = child {
            // It may have ended by itself at the cut.
            let _ = child.start_kill();
            child.wait().await.expect("it ends");
        }
        *self.blade.writes.lock().expect("never poisoned")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.proxy.abort();
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>>;

async fn serve(listener: TcpListener, client: kube::Client, blade: Arc<Blade>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (client, blade) = (client.clone(), Arc::clone(&blade));
        tokio::spawn(async move {
            let answer = hyper::service::service_fn(move |request: Request<Incoming>| {
                let (client, blade) = (client.clone(), Arc::clone(&blade));
                async move { Ok::<_, Infallible>(pass(request, client, &blade).await) }
            });
            let served = hyper::server::conn::http1::Builder::new();
            // A program that is killed breaks its connections.
            let _ = served.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn pass(request: Request<Incoming>, client: kube::Client, blade: &Blade) -> Answer {
    let write = !matches!(*request.method(), http::Method::GET | http::Method::HEAD);
    let (before, after) = if write { blade.count() } else { (false, false) };
    if before {
        blade.fall();
        return lost();
    }
    let (mut parts, body) = request.into_parts();
    for name in
        [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH]
    {
        parts.headers.remove(name);
    }
    let Ok(body) = body.collect().await else { return lost() };
    let sent = Request::from_parts(parts, Body::from(body.to_bytes().to_vec()));
    let answer = client.send(sent).await;
    if after {
        blade.fall();
        return lost();
    }
    match answer {
        Ok(answer) => answer.map(|body| body.map_err(Into::into).boxed_unsync()),
        Err(_) => lost(),
    }
}

/// What a client sees that nobody answers any more.
fn lost() -> Answer {
    let mut answer =
        Response::new(http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync());
    *answer.status_mut() = StatusCode::BAD_GATEWAY;
    answer
}
