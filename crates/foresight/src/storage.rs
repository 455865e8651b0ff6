//! What an edit leads to for volumes, and what of it cannot be undone, read off the log of a course.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use phased::{KindRef, ObjectId};
use serde::Serialize;
use serde_json::Value;

use crate::consequence::set_of;
use crate::happening::{Happening, Wrote};
use crate::stage::Stage;
use crate::words::{folded, named};
use crate::workload::{Move, What};

const CLAIM: &str = "PersistentVolumeClaim";
const GROWN: &str = "grown";

/// Claims to which the same happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// What happens: `made, 10Gi, class fast`, `grown from 10Gi to 20Gi`, `deleted`, or that they
    /// are kept although their pod goes.
    pub what: String,
    /// The claims, in order.
    pub claims: Vec<String>,
}

/// Volumes that are made, grown or deleted, or that outlive their pod.
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
        add(&mut told, what, id);
    }
    for id in left_behind(stage) {
        add(&mut told, "kept with all data, and used by no pod any more".to_owned(), &id);
    }
    told
}

fn add(told: &mut Vec<Storage>, what: String, id: &ObjectId) {
    match told.iter_mut().find(|one| one.what == what) {
        Some(one) => one.claims.push(named(id)),
        None => told.push(Storage { what, claims: vec![named(id)] }),
    }
}

/// Claims of pods that went for good, as far as the claims stay.
fn left_behind(stage: &Stage) -> Vec<ObjectId> {
    let gone = stage.log.iter().filter_map(|happening| match happening {
        Happening::Moved(moved) if moved.what == What::Removed => Some(&moved.id),
        _ => None,
    });
    let gone = gone.filter(|pod| stage.world.get(pod).is_none());
    let claims = gone.flat_map(|pod| {
        let set = set_of(pod, stage).map(|(_, live)| &live.value["spec"]["volumeClaimTemplates"]);
        let templates = set.and_then(Value::as_array).into_iter().flatten();
        templates.filter_map(move |one| {
            let template = one["metadata"]["name"].as_str()?;
            let kind = KindRef::of::<PersistentVolumeClaim>(true);
            let name = format!("{template}-{}", pod.name);
            Some(ObjectId::new(kind, pod.namespace.clone(), name))
        })
    });
    claims.filter(|claim| stage.world.get(claim).is_some()).collect()
}

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
