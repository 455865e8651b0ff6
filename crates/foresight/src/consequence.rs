//! What an edit leads to for pods and clients, read off the log of a course.

use phased::{Live, ObjectId};
use serde::Serialize;

use crate::change;
use crate::happening::Happening;
use crate::stage::Stage;
use crate::words::named;
use crate::workload::What;

/// Pods of a workload that restart, start or go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// What happens to them: `restart`, `start`, `stop`, `replaced`.
    pub what: &'static str,
    /// The workload, or what else is behind it.
    pub of: String,
    /// The pods, in order.
    pub pods: Vec<String>,
    /// How many at a time; `None` where the workload decides.
    pub at_a_time: Option<usize>,
    /// Why.
    pub why: String,
}

/// What clients of a Service notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interruption {
    /// The Service.
    pub service: String,
    /// Whether there is a moment without a ready pod.
    pub interrupted: bool,
    /// The fewest ready pods on the way.
    pub fewest: usize,
    /// Ready pods before.
    pub before: usize,
    /// Pods that are missing at the worst moment.
    pub while_missing: Vec<String>,
}

/// Pods in the order in which something happens to them.
pub fn restarts(stage: &Stage) -> Vec<Restart> {
    let mut found: Vec<Restart> = Vec::new();
    let mut replaced: Vec<&ObjectId> = Vec::new();
    for happening in &stage.log {
        let (id, what, of, why) = match happening {
            Happening::Moved(moved) if moved.id.kind.kind == "Pod" => {
                let of = workload_of(&moved.id, stage);
                let why = template_changes(stage, &of);
                match moved.what {
                    What::Replaced => (&moved.id, "restart", of, why),
                    What::Made if replaced.contains(&&moved.id) => continue,
                    What::Made => (&moved.id, "start", of, String::new()),
                    What::Removed => (&moved.id, "stop", of, String::new()),
                    What::Ready | What::Noticed => continue,
                }
            }
            Happening::Wrote(wrote) if wrote.id.kind.kind == "Pod" && wrote.after.is_none() => {
                (&wrote.id, "replaced", workload_of(&wrote.id, stage), wrote.why.clone())
            }
            _ => continue,
        };
        if matches!(what, "restart" | "replaced") {
            replaced.push(id);
        }
        match found.iter_mut().find(|one| one.what == what && one.of == of) {
            Some(one) => one.pods.push(id.name.clone()),
            None => found.push(Restart {
                what,
                of,
                pods: vec![id.name.clone()],
                at_a_time: Some(1),
                why,
            }),
        }
    }
    found.extend(rolled_at_once(stage));
    found
}

/// Deployments and DaemonSets are not played pod by pod.
fn rolled_at_once(stage: &Stage) -> Vec<Restart> {
    let writes = stage.log.iter().filter_map(|happening| match happening {
        Happening::Wrote(wrote) if matches!(wrote.id.kind.kind, "Deployment" | "DaemonSet") => {
            Some(wrote)
        }
        _ => None,
    });
    let rolled =
        writes.filter_map(|wrote| {
            let of = named(&wrote.id);
            let why = template_changes(stage, &of);
            let what = if wrote.before.is_none() { "start" } else { "restart" };
            (wrote.after.is_some() && (wrote.before.is_none() || !why.is_empty())).then(|| {
                Restart { what, of, pods: vec!["all its pods".to_owned()], at_a_time: None, why }
            })
        });
    rolled.collect()
}

/// The StatefulSet that a pod is called after.
fn workload_of(pod: &ObjectId, stage: &Stage) -> String {
    let stem = pod.name.rsplit_once('-').map_or(pod.name.as_str(), |(stem, _)| stem);
    set_of(pod, stage).map_or_else(|| format!("pods {stem}-*"), |(id, _)| named(id))
}

/// The StatefulSet that a pod is called after, if it is there at the end.
pub(crate) fn set_of<'a>(pod: &ObjectId, stage: &'a Stage) -> Option<(&'a ObjectId, &'a Live)> {
    let (stem, _) = pod.name.rsplit_once('-')?;
    let mut sets = stage.world.of_kind("StatefulSet");
    sets.find(|(id, _)| id.namespace == pod.namespace && id.name == stem)
}

/// The fields of a workload's template that change, in one line.
fn template_changes(stage: &Stage, workload: &str) -> String {
    let mut fields: Vec<String> = Vec::new();
    for happening in &stage.log {
        let Happening::Wrote(wrote) = happening else { continue };
        let (Some(before), Some(after)) = (&wrote.before, &wrote.after) else { continue };
        if named(&wrote.id) != workload {
            continue;
        }
        let changes = change::between(wrote.id.kind.kind, &before.value, &after.value);
        let inside = changes.into_iter().filter_map(|c| {
            let field = c.field.strip_prefix("spec.template.")?;
            Some(field.strip_prefix("spec.").unwrap_or(field).to_owned())
        });
        fields.extend(inside.filter(|field| !fields.contains(field)).collect::<Vec<_>>());
    }
    match fields.as_slice() {
        [] => String::new(),
        [only] => format!("{only} changes"),
        [first, rest @ ..] => format!("{first} and {} more change", rest.len()),
    }
}

/// What clients notice.
pub fn interruptions(stage: &Stage) -> Vec<Interruption> {
    let noticed = stage.services.all().filter(|(_, reach)| reach.fewest < reach.before);
    noticed
        .map(|(id, reach)| Interruption {
            service: named(id),
            interrupted: reach.fewest == 0,
            fewest: reach.fewest,
            before: reach.before,
            while_missing: reach.missing.clone(),
        })
        .collect()
}
