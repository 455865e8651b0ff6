//! What an edit leads to, read off the log of a course.

use phased::ObjectId;
use serde::Serialize;
use serde_json::Value;

use crate::change;
use crate::happening::{Happening, Wrote};
use crate::stage::Stage;
use crate::words::{folded, named};
use crate::workload::{Move, What};

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
    let set = stage
        .world
        .of_kind("StatefulSet")
        .find(|(id, _)| id.namespace == pod.namespace && id.name == stem);
    set.map_or_else(|| format!("pods {stem}-*"), |(id, _)| named(id))
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

/// Claims to which the same happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// What happens: `made, 10Gi, class fast`, `grown from 10Gi to 20Gi`, `deleted`.
    pub what: String,
    /// The claims, in order.
    pub claims: Vec<String>,
}

/// Volumes that are made, grown or deleted.
pub fn storage(stage: &Stage) -> Vec<Storage> {
    let mut told: Vec<Storage> = Vec::new();
    for happening in &stage.log {
        let (id, what) = match happening {
            Happening::Moved(moved) if moved.id.kind.kind == CLAIM => {
                (&moved.id, made(moved, stage))
            }
            Happening::Wrote(wrote) if wrote.id.kind.kind == CLAIM => match claim(wrote) {
                Some(what) => (&wrote.id, what),
                None => continue,
            },
            _ => continue,
        };
        match told.iter_mut().find(|one| one.what == what) {
            Some(one) => one.claims.push(named(id)),
            None => told.push(Storage { what, claims: vec![named(id)] }),
        }
    }
    told
}

const CLAIM: &str = "PersistentVolumeClaim";

fn made(moved: &Move, stage: &Stage) -> String {
    let spec = stage.world.get(&moved.id).map_or(Value::Null, |live| live.value["spec"].clone());
    let class = spec["storageClassName"].as_str();
    let class = class.map_or("the default class".to_owned(), |class| format!("class {class}"));
    format!("made, {}, {class}", size(&spec))
}

fn size(spec: &Value) -> String {
    let size = &spec["resources"]["requests"]["storage"];
    size.as_str().unwrap_or("size unknown").to_owned()
}

fn claim(wrote: &Wrote) -> Option<String> {
    match (&wrote.before, &wrote.after) {
        (Some(_), None) => Some("deleted".to_owned()),
        (Some(before), Some(after)) => {
            let (old, new) = (size(&before.value["spec"]), size(&after.value["spec"]));
            (old != new).then(|| format!("{GROWN} from {old} to {new}"))
        }
        (None, _) => Some("made".to_owned()),
    }
}

const GROWN: &str = "grown";

/// What cannot be undone.
pub fn lasting(stage: &Stage) -> Vec<String> {
    let mut told = Vec::new();
    for one in storage(stage) {
        let claims = folded(&one.claims, 4);
        if one.what == "deleted" {
            told.push(format!("the data of {claims} go"));
        } else if one.what.starts_with(GROWN) {
            told.push(format!("what is {} cannot shrink again ({claims})", one.what));
        }
    }
    for happening in &stage.log {
        if let Happening::Wrote(wrote) = happening
            && wrote.id.kind.kind == "Secret"
            && wrote.after.is_none()
        {
            told.push(format!("the passwords of {} go", named(&wrote.id)));
        }
    }
    told
}
