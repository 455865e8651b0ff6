//! The StatefulSet controller of kube-controller-manager 1.36: ordered and parallel, partitions,
//! revisions, claims, and every status counter.
//!
//! Must not start or stop containers; it writes pods and claims, the kubelet model does the rest.

mod claims;
mod pod;
mod revision;
mod rollout;
mod status;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::door::{Door, PODS, REVISIONS, STATEFUL_SETS};
use super::retry::Retries;
use super::{Controller, Model, field};
use crate::{Core, Failure};

/// State that is not in the store: the retry queue of sets whose sync failed.
#[derive(Default)]
pub(super) struct StatefulSets {
    retries: Retries,
}

impl Controller for StatefulSets {
    fn watches(&self) -> &'static [&'static str] {
        &["statefulsets", "pods", "persistentvolumeclaims", "controllerrevisions"]
    }

    fn sync(&mut self, core: &mut Core, _: &mut Model) -> Option<Timestamp> {
        let mut door = Door::controller(core, "statefulset-controller", "statefulset-controller");
        let now = door.now();
        let mut wake = None;
        for set in door.list(STATEFUL_SETS, None) {
            let uid = field::uid(&set).to_owned();
            let version = looked_at(&door, &set);
            if let Some(at) = self.retries.waits(&uid, &version, now) {
                wake = super::earliest(wake, Some(at));
                continue;
            }
            let next = match one(&mut door, &set) {
                Ok(next) => {
                    self.retries.succeeded(&uid);
                    next
                }
                Err(_) => Some(self.retries.failed(&uid, &version, now)),
            };
            wake = super::earliest(wake, next);
        }
        wake
    }
}

/// What brings a set back into the queue at once, although it waits after a failure: a change of its
/// own, or of a pod that has the name of one of its ordinals, whoever owns the pod.
fn looked_at(door: &Door, set: &Value) -> String {
    let mut text = field::text(set, "/metadata/resourceVersion").to_owned();
    for found in door.shared(PODS, Some(field::namespace(set))) {
        if pod::ordinal(set, &found).is_some() {
            text.push('/');
            text.push_str(field::text(&found, "/metadata/resourceVersion"));
        }
    }
    text
}

fn one(door: &mut Door, set: &Value) -> Result<Option<Timestamp>, Failure> {
    adopt_revisions(door, set)?;
    let pods = claim_pods(door, set)?;
    let revisions = revision::resolve(door, set)?;
    let now = door.now();
    let mut sync = rollout::Sync::new(set, &revisions, pods.clone(), now);
    let (mut computed, result) = sync.run(door);
    write_status(door, set, &mut computed)?;
    result?;
    revision::truncate(door, set, &revisions, &pods)?;
    Ok(next_available(set, &sync, now))
}

fn write_status(door: &mut Door, set: &Value, computed: &mut Value) -> Result<(), Failure> {
    status::complete(set, computed);
    let stored = status::stored(computed);
    let mut written = set.clone();
    let mut before = field::map(set, "/status");
    for (member, value) in field::map(&stored, "") {
        before.insert(member, value);
    }
    for counter in ["readyReplicas", "currentReplicas", "updatedReplicas"] {
        if stored.get(counter).is_none() {
            before.remove(counter);
        }
    }
    if Some(&before) == set["status"].as_object() {
        return Ok(());
    }
    written["status"] = Value::Object(before);
    door.update_status(STATEFUL_SETS, written).map(|_| ())
}

/// With `minReadySeconds`, the moment at which the next ready pod counts as available.
fn next_available(set: &Value, sync: &rollout::Sync, now: Timestamp) -> Option<Timestamp> {
    let seconds = field::number(set, "/spec/minReadySeconds", 0);
    if seconds == 0 {
        return None;
    }
    let ready = sync.replicas.iter().filter(|one| one.ready());
    let times = ready.filter_map(|one| pod::available_at(&one.pod, seconds));
    let later = times.filter(|at| *at >= now).min()?;
    later.checked_add(jiff::SignedDuration::from_millis(1)).ok()
}

/// The set's pods by owner; orphans that match are adopted, owned ones that do not are released.
fn claim_pods(door: &mut Door, set: &Value) -> Result<Vec<Value>, Failure> {
    let mut owned = BTreeMap::new();
    for found in door.shared(PODS, Some(field::namespace(set))) {
        let matches = field::selects(&set["spec"]["selector"], &field::labels(&found))
            && pod::ordinal(set, &found).is_some();
        let owner = field::controller(&found).map(|owner| owner["uid"].clone());
        if owner.as_ref().map_or(!matches, |uid| uid != field::uid(set)) {
            continue;
        }
        let found = (*found).clone();
        let kept = match owner {
            Some(_) if matches => Some(found),
            Some(_) => release(door, set, found)?,
            None => adopt(door, PODS, set, found)?,
        };
        if let Some(pod) = kept {
            owned.insert(claims::ordinal_of(set, &pod), pod);
        }
    }
    Ok(owned.into_values().collect())
}

fn adopt(
    door: &mut Door,
    resource: super::door::Resource,
    set: &Value,
    mut orphan: Value,
) -> Result<Option<Value>, Failure> {
    if field::deleting(set) || field::deleting(&orphan) {
        return Ok(None);
    }
    let mut owners = field::list(&orphan, "/metadata/ownerReferences").to_vec();
    owners.push(field::owner_reference(set, true));
    orphan["metadata"]["ownerReferences"] = Value::Array(owners);
    door.update(resource, orphan).map(Some)
}

fn release(door: &mut Door, set: &Value, mut pod: Value) -> Result<Option<Value>, Failure> {
    if field::deleting(set) || field::deleting(&pod) {
        return Ok(None);
    }
    let mut owners = field::list(&pod, "/metadata/ownerReferences").to_vec();
    owners.retain(|owner| owner["uid"] != field::uid(set));
    match owners.is_empty() {
        true => field::remove(&mut pod, "/metadata", "ownerReferences"),
        false => pod["metadata"]["ownerReferences"] = json!(owners),
    }
    door.update(PODS, pod)?;
    Ok(None)
}

fn adopt_revisions(door: &mut Door, set: &Value) -> Result<(), Failure> {
    for revision in door.shared(REVISIONS, Some(field::namespace(set))) {
        let orphan = field::controller(&revision).is_none();
        if orphan && field::selects(&set["spec"]["selector"], &field::labels(&revision)) {
            adopt(door, REVISIONS, set, (*revision).clone())?;
        }
    }
    Ok(())
}
