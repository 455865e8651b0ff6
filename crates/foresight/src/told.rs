//! What others said: Events, and what pods report of their containers, each with who said it.
//!
//! Must not interpret; the words are those of who raised them.

use jiff::Timestamp;
use phased::{Live, ObjectId};
use serde::Serialize;
use serde_json::Value;

use crate::words::named;

/// Something that somebody said about an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Word {
    /// When it was last said; `None` where nobody wrote it down.
    pub at: Option<Timestamp>,
    /// Who said it: `kubelet`, `default-scheduler`, …
    pub who: String,
    /// `Kind/namespace/name`.
    pub about: String,
    /// The reason, CamelCase.
    pub reason: String,
    /// The words.
    pub message: String,
    /// How often.
    pub times: i64,
    /// Whether it is a warning.
    pub warning: bool,
}

/// Reads an Event of either API.
pub fn event(event: &Value) -> Option<Word> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let first = |pointers: &[&str]| {
        pointers.iter().map(|p| text(p)).find(|t| !t.is_empty()).unwrap_or_default().to_owned()
    };
    let times = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
        "/eventTime",
        "/firstTimestamp",
        "/metadata/creationTimestamp",
    ];
    let at = times.iter().find_map(|pointer| text(pointer).parse().ok());
    let object = ["/involvedObject", "/regarding"].iter().find_map(|p| event.pointer(p))?;
    let part = |name: &str| object[name].as_str().unwrap_or_default();
    let about = match part("namespace") {
        "" => format!("{}/{}", part("kind"), part("name")),
        namespace => format!("{}/{namespace}/{}", part("kind"), part("name")),
    };
    let counts = ["/series/count", "/count", "/deprecatedCount"];
    Some(Word {
        at,
        who: first(&[
            "/reportingController",
            "/reportingComponent",
            "/source/component",
            "/deprecatedSource/component",
        ]),
        about,
        reason: text("/reason").to_owned(),
        message: first(&["/message", "/note"]),
        times: counts.iter().find_map(|p| event.pointer(p)?.as_i64()).unwrap_or(1).max(1),
        warning: text("/type") == "Warning",
    })
}

/// The uid of the object that an Event is about.
pub fn about_uid(event: &Value) -> &str {
    let object = event.pointer("/involvedObject").or_else(|| event.pointer("/regarding"));
    object.and_then(|object| object["uid"].as_str()).unwrap_or_default()
}

/// What a pod reports of itself that keeps it from being ready.
pub fn pod(id: &ObjectId, live: &Live) -> Vec<Word> {
    let status = &live.value["status"];
    let mut words = Vec::new();
    let word = |who: &str, reason: &Value, message: String| Word {
        at: None,
        who: who.to_owned(),
        about: named(id),
        reason: reason.as_str().unwrap_or_default().to_owned(),
        message,
        times: 1,
        warning: true,
    };
    for condition in status["conditions"].as_array().into_iter().flatten() {
        if condition["type"] == "PodScheduled" && condition["status"] == "False" {
            let message = condition["message"].as_str().unwrap_or_default().to_owned();
            words.push(word("scheduler", &condition["reason"], message));
        }
    }
    let lists = ["initContainerStatuses", "containerStatuses"];
    for container in lists.iter().flat_map(|l| status[*l].as_array().into_iter().flatten()) {
        let name = container["name"].as_str().unwrap_or_default();
        let waiting = &container["state"]["waiting"];
        let quiet = ["PodInitializing", "ContainerCreating"];
        if waiting["reason"].as_str().is_some_and(|reason| !quiet.contains(&reason)) {
            let message = waiting["message"].as_str().unwrap_or("no message");
            words.push(word("kubelet", &waiting["reason"], format!("container {name}: {message}")));
        }
        let ended = [&container["state"]["terminated"], &container["lastState"]["terminated"]];
        if let Some(last) = ended.into_iter().find(|t| t["exitCode"].as_i64().unwrap_or(0) != 0) {
            let code = &last["exitCode"];
            let said = last["message"].as_str().unwrap_or_default().trim();
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            let message = format!("container {name} ended with exit code {code}{said}");
            words.push(word("container", &last["reason"], message));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_of_either_api_tells_who_said_it_and_how_often() {
        let old = json!({"involvedObject": {"kind": "Pod", "namespace": "a", "name": "b", "uid": "u"},
            "source": {"component": "kubelet"}, "count": 7, "type": "Warning", "reason": "Failed",
            "message": "no image", "lastTimestamp": "2026-01-01T00:00:00Z"});
        let new = json!({"regarding": {"kind": "Pod", "namespace": "a", "name": "b", "uid": "u"},
            "reportingController": "kubelet", "series": {"count": 7}, "type": "Warning",
            "reason": "Failed", "note": "no image", "eventTime": "2026-01-01T00:00:00.000000Z"});
        assert_eq!(event(&old), event(&new));
        assert_eq!(
            event(&old).map(|word| (word.who, word.about, word.times)),
            Some(("kubelet".to_owned(), "Pod/a/b".to_owned(), 7))
        );
        assert_eq!(about_uid(&new), "u");
    }
}
