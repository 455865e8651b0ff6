//! One resource: read it, let the server make the edit as a dry run, and play the controller on.

use foresight::course::{Course, End};
use foresight::forecast::{Edit, Forecast, Said};
use foresight::mistake::{self, About, Mistake};
use foresight::words::named;
use foresight::{change, schema};
use phased::{Live, Settings};
use serde_json::Value;

use super::look::{self, Stores};
use super::{Manner, Task, edit};
use crate::kinds;
use crate::link::Link;
use crate::manifest::Document;

/// Whom requests about a task are about, with the words for it.
struct Whom<'a> {
    task: &'a Task,
    resource: String,
    definition: Value,
}

impl<'a> Whom<'a> {
    fn of(task: &'a Task) -> Self {
        Self { task, resource: named(&task.id), definition: kinds::definition(&task.row) }
    }

    fn schema(&self) -> &Value {
        schema::of(&self.definition, self.task.row.kind.version)
    }

    fn mistake(&self, link: &Link, verb: &str, error: kube::Error) -> Result<Told, Mistake> {
        let kind = self.task.row.kind;
        let about = About {
            resource: &self.resource,
            namespace: &self.task.id.namespace,
            verb: &format!("{verb} {}.{}", kind.plural, kind.group),
            schema: self.schema(),
        };
        let refusal = link.refusal(error)?;
        Ok(Told {
            mistake: mistake::of(&refusal, &about),
            of_manifest: mistake::is_about_the_manifest(&refusal),
        })
    }
}

/// What a refusal means, and whether it is the manifest that is refused.
struct Told {
    mistake: Mistake,
    of_manifest: bool,
}

/// Foresees a document.
///
/// # Errors
/// When it cannot be meant, cannot be read, or when the request rather than the manifest is refused.
pub async fn document(
    link: &Link,
    document: Document,
    manner: &Manner,
    settings: &Settings,
) -> Result<Forecast, Mistake> {
    let (tasks, _) = super::tasks(vec![document], link, None)?;
    // `tasks` answers at least one, or a mistake.
    let task = tasks.first().ok_or_else(|| Mistake::new("There is no resource.", ""))?;
    foresee(link, task, &Stores::new(), (manner, settings)).await
}

/// Foresees one resource.
pub(super) async fn foresee(
    link: &Link,
    task: &Task,
    stores: &Stores,
    (manner, settings): (&Manner, &Settings),
) -> Result<Forecast, Mistake> {
    let whom = Whom::of(task);
    let live = read(link, &whom).await?;
    let frozen = if live.is_none() { schema::frozen(whom.schema()) } else { Vec::new() };
    let notes = task.notes.clone();
    let mut edit = Edit { new: live.is_none(), notes, frozen, ..Edit::default() };
    let after = match edit::dry_run(link, &task.id, &task.manifest, live.as_ref(), manner).await {
        Ok(after) => after,
        Err(error) => {
            let verb = if live.is_some() { "patch" } else { "create" };
            let told = whom.mistake(link, verb, error)?;
            return if told.of_manifest {
                Ok(refused(&whom, edit, told.mistake))
            } else {
                Err(told.mistake)
            };
        }
    };
    if let Some(live) = &live {
        edit.changes = change::between(task.row.kind.kind, &live.value, &after);
    }
    let root = look::root(task, after, live.as_ref())?;
    let (course, end) = look::onward(link, task, root, (stores, settings)).await?;
    Ok(Forecast::of(&course, &end, task.source.clone(), edit))
}

/// The course of a resource that does not exist yet.
///
/// # Errors
/// When the server refuses it.
pub(crate) async fn creation(
    link: &Link,
    task: &Task,
    settings: &Settings,
) -> Result<(Course, End), Mistake> {
    let manner = Manner::new(false, false, None);
    let after = match edit::dry_run(link, &task.id, &task.manifest, None, &manner).await {
        Ok(after) => after,
        Err(error) => return Err(Whom::of(task).mistake(link, "create", error)?.mistake),
    };
    let root = look::root(task, after, None)?;
    look::onward(link, task, root, (&Stores::new(), settings)).await
}

async fn read(link: &Link, whom: &Whom<'_>) -> Result<Option<Live>, Mistake> {
    let id = &whom.task.id;
    match link.viewer.api(id.kind, &id.namespace).get_opt(&id.name).await {
        Ok(found) => found
            .map(|object| runner::api::live(id.kind, object))
            .transpose()
            .map_err(|error| Mistake::new(format!("{}: {error}", whom.resource), "")),
        Err(error) => Err(whom.mistake(link, "get", error)?.mistake),
    }
}

fn refused(whom: &Whom<'_>, edit: Edit, mistake: Mistake) -> Forecast {
    let prefix = format!("{}: ", whom.resource);
    let message = mistake.sentence.strip_prefix(&prefix).unwrap_or(&mistake.sentence);
    let said = Said {
        reason: "RefusedByServer".to_owned(),
        message: message.to_owned(),
        remedy: mistake.next,
    };
    let source = whom.task.source.clone();
    Forecast::refused(whom.resource.clone(), source, edit, vec![said])
}
