//! Sends a scenario's requests through a `kube::Client` and writes down the answers.
//!
//! The client may lead anywhere: every server gets the same bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::normal::Eyes;
use super::scenario::{Scenario, Step};

/// How long a value may take to appear. Garbage collection of a fresh kind takes over half a minute.
const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(50);

/// One normalised answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The step's name.
    pub(crate) step: String,
    /// HTTP status code.
    pub(crate) code: u16,
    /// Content type.
    pub(crate) media: String,
    /// `Warning` headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    /// The body: JSON, an array of the objects of a stream, or text.
    pub(crate) body: Value,
}

struct Raw {
    code: u16,
    media: String,
    warnings: Vec<String>,
    body: Value,
}

/// Runs a scenario in a new namespace of its own.
///
/// # Errors
/// A request finds no server, or what a step waits for does not come.
pub(crate) async fn run(client: &Client, scenario: &Scenario) -> Result<Vec<Answer>> {
    let namespace = format!("conformance-{}", scenario.name);
    prepare(client, &namespace).await?;
    let mut eyes = Eyes::default();
    let mut kept = BTreeMap::from([("ns".to_owned(), namespace)]);
    let mut answers = Vec::new();
    for step in &scenario.steps {
        let context = || format!("scenario {}, step {}", scenario.name, step.name);
        let raw = settled(client, step, &kept).await.with_context(context)?;
        for (name, pointer) in &step.keep {
            let value = raw.body.pointer(pointer).and_then(Value::as_str);
            let value = value.with_context(|| {
                format!("no text at {pointer} of the answer {}: {}", raw.code, raw.body)
            });
            let value = value.with_context(context)?;
            kept.insert(name.clone(), value.to_owned());
            eyes.name(name, value);
        }
        let mut body = eyes.normalise(raw.body, step.polls());
        // A refusal is short; it is compared whole unless the step singles out parts of a Status.
        let parts = raw.code < 400 || step.only.iter().any(|pointer| pointer == "/code");
        if parts && !step.only.is_empty() {
            let part = |pointer: &String| {
                (pointer.clone(), body.pointer(pointer).cloned().unwrap_or(Value::Null))
            };
            body = step.only.iter().map(part).collect();
        }
        answers.push(Answer {
            step: step.name.clone(),
            code: raw.code,
            media: raw.media,
            warnings: raw.warnings,
            body,
        });
    }
    Ok(answers)
}

/// Makes the namespace and waits for what every namespace gets.
async fn prepare(client: &Client, namespace: &str) -> Result<()> {
    let step = |send: &str, body: Option<Value>, until: Option<u16>| Step {
        name: "prepare".to_owned(),
        send: send.to_owned(),
        content_type: None,
        accept: None,
        body,
        file: None,
        also: None,
        text: None,
        keep: BTreeMap::new(),
        until: BTreeMap::new(),
        until_code: until,
        only: Vec::new(),
    };
    let kept = BTreeMap::from([("ns".to_owned(), namespace.to_owned())]);
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "$ns" },
    });
    let made = settled(client, &step("POST /api/v1/namespaces", Some(object), None), &kept).await?;
    if made.code != 201 {
        bail!("namespace {namespace}: {}", made.body);
    }
    for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
        let send = format!("GET /api/v1/namespaces/$ns/{path}");
        settled(client, &step(&send, None, Some(200)), &kept).await?;
    }
    Ok(())
}

async fn settled(client: &Client, step: &Step, kept: &BTreeMap<String, String>) -> Result<Raw> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let raw = send(client, step, kept).await?;
        let shown = |(pointer, wanted): (&String, &Value)| {
            let wanted = fill(wanted, kept);
            raw.body.pointer(pointer).unwrap_or(&Value::Null) == &wanted
        };
        if step.until_code.is_none_or(|code| code == raw.code) && step.until.iter().all(shown) {
            return Ok(raw);
        }
        if tokio::time::Instant::now() > deadline {
            bail!("waited in vain; the last answer was {}: {}", raw.code, raw.body);
        }
        // poll: the answer to a request, which only a request can bring
        // poll: what another process's controllers do; virtual time in the simulator
        tokio::time::sleep(PAUSE).await;
    }
}

async fn send(client: &Client, step: &Step, kept: &BTreeMap<String, String>) -> Result<Raw> {
    let (method, target) = step.send.split_once(' ').context("a step sends METHOD TARGET")?;
    let body = match (&step.body, &step.text) {
        (Some(value), _) => serde_json::to_vec(&fill(value, kept)).context("write the body")?,
        (None, Some(text)) => fill_text(text, kept).into_bytes(),
        (None, None) => Vec::new(),
    };
    let mut request = http::Request::builder()
        .method(method)
        .uri(fill_text(target, kept))
        .header("User-Agent", "conformance/1")
        .header("Accept", step.accept.as_deref().unwrap_or("application/json"));
    if !body.is_empty() {
        request = request.header("Content-Type", step.media());
    }
    let request = request.body(Body::from(body)).context("build the request")?;
    let response = client.send(request).await.context("send the request")?;
    let (head, body) = response.into_parts();
    let header = |name: &str| {
        let values = head.headers.get_all(name).into_iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let warnings: Vec<String> = header("warning");
    let media: Vec<String> = header("content-type");
    let bytes = body.collect().await.context("read the answer")?.to_bytes();
    let stream = target.contains("watch=true") && head.status.is_success();
    Ok(Raw {
        code: head.status.as_u16(),
        media: media.into_iter().next().unwrap_or_default(),
        warnings,
        body: understand(&bytes, stream)?,
    })
}

fn understand(bytes: &[u8], stream: bool) -> Result<Value> {
    if stream {
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let events: Result<Vec<Value>, _> = lines.map(serde_json::from_slice).collect();
        return Ok(Value::Array(events.context("read a stream")?));
    }
    let text = || Value::String(String::from_utf8_lossy(bytes).into_owned());
    Ok(serde_json::from_slice(bytes).unwrap_or_else(|_| text()))
}

fn fill(value: &Value, kept: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(fill_text(text, kept)),
        Value::Array(items) => items.iter().map(|item| fill(item, kept)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), fill(value, kept)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn fill_text(text: &str, kept: &BTreeMap<String, String>) -> String {
    let mut text = text.replace("$ns", kept.get("ns").map_or("", String::as_str));
    for (name, value) in kept {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    text
}
