//! Which resources are meant, from the documents that were given.

use foresight::mistake::Mistake;
use foresight::words::{count, named};
use operators::catalog::Row;
use phased::ObjectId;
use serde_json::{Value, json};

use crate::kinds;
use crate::link::Link;
use crate::manifest::Document;

/// A resource that is to be foreseen.
#[derive(Clone)]
pub struct Task {
    /// Its kind.
    pub row: Row,
    /// Its name.
    pub id: ObjectId,
    /// The manifest, without what a server writes.
    pub manifest: Value,
    /// Where the manifest came from.
    pub source: String,
    /// What a person should know of the manifest.
    pub notes: Vec<String>,
}

/// Resources of ours among the documents, and how many others there are.
///
/// # Errors
/// When a document cannot be meant as it stands.
pub fn tasks(
    documents: Vec<Document>,
    link: &Link,
    given: Option<&str>,
) -> Result<(Vec<Task>, usize), Mistake> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut others = 0;
    for document in documents {
        let row = kinds::of(&document.value)
            .map_err(|m| Mistake::new(format!("{}: {}", document.source, m.sentence), m.next))?;
        let Some(row) = row else {
            others += 1;
            continue;
        };
        let task = task(row, document, link, given)?;
        if let Some(twin) = tasks.iter().find(|other| other.id == task.id) {
            return Err(Mistake::new(
                format!(
                    "{} stands twice: in {} and in {}.",
                    named(&task.id),
                    twin.source,
                    task.source
                ),
                "Take one of them out; the later one would win.",
            ));
        }
        tasks.push(task);
    }
    if tasks.is_empty() {
        let kinds: Vec<&str> = operators::catalog::rows().iter().map(|row| row.kind.kind).collect();
        return Err(Mistake::new(
            format!("{} given, and none of a kind that Steadfast runs.", count(others, "document")),
            format!("It runs: {}.", kinds.join(", ")),
        ));
    }
    Ok((tasks, others))
}

fn task(row: Row, document: Document, link: &Link, given: Option<&str>) -> Result<Task, Mistake> {
    let Document { value: mut manifest, source } = document;
    let text = |field: &str| manifest["metadata"][field].as_str().map(str::to_owned);
    let own = text("namespace").filter(|namespace| !namespace.is_empty());
    if let (Some(own), Some(given)) = (&own, given)
        && own != given
    {
        return Err(Mistake::new(
            format!("{source}: metadata.namespace is {own}, and -n is {given}."),
            "Leave one of them out.",
        ));
    }
    let namespace = own.unwrap_or_else(|| link.namespace.clone());
    let id = ObjectId::new(row.kind, namespace.clone(), text("name").unwrap_or_default());
    manifest["metadata"]["namespace"] = json!(namespace);
    let mut notes = Vec::new();
    let stripped = foresight::edit::strip(&mut manifest);
    if !stripped.is_empty() {
        notes.push(format!(
            "the manifest is a dump of a live object; left out: {} (take them out of the file, or \
             kubectl refuses it once the object has changed)",
            stripped.join(", ")
        ));
    }
    link.imagine(&namespace);
    Ok(Task { row, id, manifest, source, notes })
}
