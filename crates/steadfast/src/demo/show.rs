//! Shows phases as they come: time, phase, reason and message of each status that differs.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream::SelectAll};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::Value;
use tokio::time::Instant;

use super::apply::Applied;

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every resource with a status became Ready.
    Ready,
    /// The time is over.
    NotReady,
}

/// Shows until everything is Ready, or the limit has passed.
pub(crate) async fn until_ready(
    client: &Client,
    applied: &[Applied],
    limit: Option<Duration>,
) -> anyhow::Result<Outcome> {
    let showing = follow(client, applied, true);
    match limit {
        None => showing.await.map(|()| Outcome::Ready),
        Some(limit) => match tokio::time::timeout(limit, showing).await {
            Ok(done) => done.map(|()| Outcome::Ready),
            Err(_) => {
                eprintln!("not Ready after {} s", limit.as_secs());
                Ok(Outcome::NotReady)
            }
        },
    }
}

/// Shows until the process is told to stop.
pub(crate) async fn for_ever(client: &Client, applied: &[Applied]) -> anyhow::Result<()> {
    follow(client, applied, false).await
}

async fn follow(client: &Client, applied: &[Applied], end_when_ready: bool) -> anyhow::Result<()> {
    let began = Instant::now();
    let watched: Vec<&Applied> = applied.iter().filter(|a| a.resource.kind == "Database").collect();
    if watched.is_empty() && end_when_ready {
        return Ok(());
    }
    let mut shown: Vec<Line> = vec![Line::default(); watched.len()];
    let mut streams = SelectAll::new();
    for (index, one) in watched.iter().enumerate() {
        let api: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &one.namespace, &one.resource);
        let config = watcher::Config::default().fields(&format!("metadata.name={}", one.name));
        let stream = watcher(api, config).default_backoff().applied_objects();
        streams.push(stream.map_ok(move |object| (index, object)).boxed());
    }
    while let Some(event) = streams.next().await {
        // A broken watch is taken up again by its backoff; there is nothing to show.
        let Ok((index, object)) = event else { continue };
        let line = Line::of(&object);
        if line != shown[index] && !line.phase.is_empty() {
            line.print(&watched[index].name, began, watched.len() > 1);
            shown[index] = line;
        }
        if end_when_ready && shown.iter().all(|l| l.ready) {
            return Ok(());
        }
    }
    Ok(())
}

/// What is shown of a status.
#[derive(Clone, Debug, Default, PartialEq)]
struct Line {
    phase: String,
    reason: String,
    message: String,
    ready: bool,
}

impl Line {
    fn of(object: &DynamicObject) -> Self {
        let status = &object.data["status"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ready = condition(status, "Ready");
        let generation = object.metadata.generation.unwrap_or_default();
        let current = status["observedGeneration"].as_i64().unwrap_or_default() >= generation;
        Self {
            phase: text(&status["phase"]),
            reason: text(&ready["reason"]),
            message: text(&ready["message"]),
            ready: current && ready["status"] == "True" && status["phase"] == "Ready",
        }
    }

    fn print(&self, name: &str, began: Instant, several: bool) {
        let clock = Timestamp::now().strftime("%H:%M:%S").to_string();
        let elapsed = began.elapsed().as_secs_f64();
        let name = if several { format!("{name}  ") } else { String::new() };
        println!(
            "{clock}  {elapsed:>6.1} s  {name}{:<13} {:<24} {}",
            self.phase, self.reason, self.message
        );
    }
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    status["conditions"]
        .as_array()
        .and_then(|all| all.iter().find(|c| c["type"] == kind))
        .unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_for_an_older_generation_is_not_ready() {
        let mut object: DynamicObject = serde_json::from_value(serde_json::json!({
            "apiVersion": "database.example.com/v1", "kind": "Database",
            "metadata": {"name": "a", "generation": 2},
            "status": {"phase": "Ready", "observedGeneration": 1,
                "conditions": [{"type": "Ready", "status": "True", "reason": "AllChecksPassed"}]}}))
        .unwrap();
        assert!(!Line::of(&object).ready);
        object.data["status"]["observedGeneration"] = 2.into();
        assert!(Line::of(&object).ready);
    }
}
