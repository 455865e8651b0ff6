//! One time line: when it was made, who edited it, how conditions turned, and the Events about it.

use jiff::Timestamp;
use phased::Live;
use serde::Serialize;
use serde_json::Value;

use crate::told::Word;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// Who did or said it.
    pub who: String,
    /// What.
    pub what: String,
}

/// The time line of a resource, oldest first.
pub fn of(root: &Live, resource: &str, events: Vec<Word>) -> Vec<Moment> {
    let mut moments: Vec<Moment> = Vec::new();
    if let Some(made) = &root.metadata.creation_timestamp {
        let what = "the resource is created".to_owned();
        moments.push(Moment { at: made.0, who: "API server".to_owned(), what });
    }
    moments.extend(edits(root));
    moments.extend(turns(root));
    moments.extend(events.into_iter().filter_map(|word| {
        let times = if word.times > 1 { format!(" (x{})", word.times) } else { String::new() };
        let about = if word.about == resource { String::new() } else { format!("{} ", word.about) };
        let what = format!("{about}{}: {}{times}", word.reason, word.message);
        Some(Moment { at: word.at?, who: word.who, what })
    }));
    moments.sort();
    moments.dedup();
    moments
}

/// Writes of the spec, the last of each manager.
fn edits(root: &Live) -> impl Iterator<Item = Moment> {
    let entries = root.value["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries
        .filter(|entry| entry.get("subresource").is_none_or(Value::is_null))
        .filter(|entry| entry["fieldsV1"].get("f:spec").is_some())
        .filter_map(|entry| {
            let who = entry["manager"].as_str().unwrap_or("somebody").to_owned();
            let at = entry["time"].as_str()?.parse().ok()?;
            Some(Moment { at, who, what: "writes the spec".to_owned() })
        })
}

/// When each condition last turned.
fn turns(root: &Live) -> impl Iterator<Item = Moment> {
    let all = root.value["status"]["conditions"].as_array().into_iter().flatten();
    all.filter_map(|condition| {
        let text = |name: &str| condition[name].as_str().unwrap_or_default();
        let at = text("lastTransitionTime").parse().ok()?;
        let what = format!("{} turns {}, {} now", text("type"), text("status"), text("reason"));
        Some(Moment { at, who: "status".to_owned(), what })
    })
}
