//! Kubernetes' own controllers, as far as a forecast needs them: which pod goes, comes or gets ready
//! next. One move at a time, so that the controller under forecast is asked in between.
//!
//! StatefulSets are played pod by pod, by the rules of kube-controller-manager: scaling before
//! updates, updates from the highest ordinal down, never two at a time. Deployments and DaemonSets
//! are taken as rolled out at once. New pods get ready; a pod that cannot start today does not heal by
//! itself. The simulator is the judge of it (`cargo test -p steadfast --test foresight`).

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use phased::{KindRef, Live, ObjectId};
use serde_json::{Value, json};

use crate::change;
use crate::pod::{self, REVISION_LABEL};
use crate::world::World;

/// Something that happened to a pod or a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The pod or claim.
    pub id: ObjectId,
    /// What happened.
    pub what: What,
}

/// What happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It was made.
    Made,
    /// It is ready.
    Ready,
    /// It was replaced, since its template changed.
    Replaced,
    /// It went with fewer replicas.
    Removed,
    /// Its controller took note of a new generation.
    Noticed,
}

/// Templates that were seen, with the names of their revisions.
#[derive(Clone, Debug, Default)]
pub struct Workloads {
    revisions: BTreeMap<ObjectId, Vec<(Value, String)>>,
}

impl Workloads {
    /// Remembers the revision that runs now.
    pub fn learn(&mut self, world: &World) {
        for (id, live) in world.of_kind("StatefulSet") {
            let revision = live.value["status"]["updateRevision"].as_str();
            if let Some(revision) = revision.filter(|_| is_noticed(live)) {
                let known = (live.value["spec"]["template"].clone(), revision.to_owned());
                self.revisions.insert(id.clone(), vec![known]);
            }
        }
    }

    /// The next move, carried out; none when everything stands still.
    pub fn next(&mut self, world: &mut World, now: Timestamp) -> Option<Move> {
        let workloads: Vec<ObjectId> = world.all().map(|(id, _)| id.clone()).collect();
        workloads.into_iter().find_map(|id| match id.kind.kind {
            "StatefulSet" => self.set(world, &id, now),
            "Deployment" | "DaemonSet" => at_once(world, &id, now),
            _ => None,
        })
    }

    fn set(&mut self, world: &mut World, id: &ObjectId, now: Timestamp) -> Option<Move> {
        let live = world.get(id)?.clone();
        if live.deletion_time().is_some() {
            return None;
        }
        if !is_noticed(&live) {
            adopt(world, id, &live, now);
            let revision = self.revision(id, &live);
            let mut value = live.value.clone();
            value["status"]["observedGeneration"] = json!(live.metadata.generation);
            value["status"]["updateRevision"] = json!(revision);
            world.put(id, value, now);
            count(world, id, now);
            return Some(Move { id: id.clone(), what: What::Noticed });
        }
        let moved = Set::read(id, &live, world).next(world, now)?;
        count(world, id, now);
        Some(moved)
    }

    /// The name of the template's revision: the same template has the same one again.
    fn revision(&mut self, id: &ObjectId, live: &Live) -> String {
        let template = &live.value["spec"]["template"];
        let known = self.revisions.entry(id.clone()).or_default();
        let same = |old: &Value| change::between("Pod", old, template).is_empty();
        if let Some((_, name)) = known.iter().find(|(old, _)| same(old)) {
            return name.clone();
        }
        let name = format!("{}-forecast{}", id.name, known.len() + 1);
        known.push((template.clone(), name.clone()));
        name
    }
}

/// Pods that nobody owns, that the selector chooses and that are named like the set's become its own.
fn adopt(world: &mut World, id: &ObjectId, live: &Live, now: Timestamp) {
    let wanted = live.value["spec"]["selector"]["matchLabels"].as_object();
    let chosen = |pod: &Live| {
        wanted.into_iter().flatten().all(|(key, value)| pod.label(key) == value.as_str())
    };
    let free = |pod: &Live| pod.metadata.owner_references.as_ref().is_none_or(Vec::is_empty);
    let pods: Vec<(ObjectId, Live)> = world
        .of_kind("Pod")
        .filter(|(pod, _)| pod.namespace == id.namespace && ordinal(id, pod).is_some())
        .filter(|(_, state)| free(state) && chosen(state))
        .map(|(pod, state)| (pod.clone(), state.clone()))
        .collect();
    for (pod, state) in pods {
        let mut value = state.value.clone();
        value["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": id.name, "uid": live.uid(),
            "controller": true, "blockOwnerDeletion": true,
        }]);
        world.put(&pod, value, now);
    }
}

/// The ordinal that a pod has in a set, by its name.
fn ordinal(set: &ObjectId, pod: &ObjectId) -> Option<i64> {
    pod.name.strip_prefix(&set.name)?.strip_prefix('-')?.parse().ok()
}

fn is_noticed(live: &Live) -> bool {
    live.value["status"]["observedGeneration"].as_i64() == live.metadata.generation
}

/// A StatefulSet and its pods by ordinal.
struct Set<'a> {
    id: &'a ObjectId,
    live: &'a Live,
    start: i64,
    replicas: i64,
    pods: BTreeMap<i64, (ObjectId, Live)>,
}

impl<'a> Set<'a> {
    fn read(id: &'a ObjectId, live: &'a Live, world: &World) -> Self {
        let spec = &live.value["spec"];
        let pods = world.of_kind("Pod").filter_map(|(pod, state)| {
            let ordinal = ordinal(id, pod)?;
            let ours = pod.namespace == id.namespace && state.is_owned_by(live.uid());
            ours.then(|| (ordinal, (pod.clone(), state.clone())))
        });
        Self {
            id,
            live,
            start: spec["ordinals"]["start"].as_i64().unwrap_or_default(),
            replicas: spec["replicas"].as_i64().unwrap_or(1),
            pods: pods.collect(),
        }
    }

    fn wanted(&self) -> std::ops::Range<i64> {
        self.start..self.start + self.replicas
    }

    fn partition(&self) -> i64 {
        let update = &self.live.value["spec"]["updateStrategy"]["rollingUpdate"];
        self.start + update["partition"].as_i64().unwrap_or_default()
    }

    fn next(&self, world: &mut World, now: Timestamp) -> Option<Move> {
        let ordered = self.live.value["spec"]["podManagementPolicy"] != "Parallel";
        for ordinal in self.wanted() {
            let Some((id, pod)) = self.pods.get(&ordinal) else {
                return self.make(ordinal, world, now);
            };
            if pod.deletion_time().is_some() {
                world.remove(id);
                return Some(Move { id: id.clone(), what: What::Removed });
            }
            if !pod::is_ready(pod) {
                if pod::may_start(pod) {
                    world.put(id, pod::started(pod, now), now);
                    return Some(Move { id: id.clone(), what: What::Ready });
                }
                if ordered {
                    return None;
                }
            }
        }
        let excess = self.pods.iter().rev().find(|(ordinal, _)| !self.wanted().contains(*ordinal));
        if let Some((_, (id, _))) = excess {
            world.remove(id);
            return Some(Move { id: id.clone(), what: What::Removed });
        }
        self.update(world)
    }

    /// The highest pod of another revision goes, once all above it are ready.
    fn update(&self, world: &mut World) -> Option<Move> {
        if self.live.value["spec"]["updateStrategy"]["type"] == "OnDelete" {
            return None;
        }
        let revision = self.live.value["status"]["updateRevision"].as_str()?;
        let from = self.partition().max(self.start);
        for (_, (id, pod)) in self.pods.range(from..).rev() {
            if pod.label(REVISION_LABEL) != Some(revision) {
                world.remove(id);
                return Some(Move { id: id.clone(), what: What::Replaced });
            }
            if !pod::is_ready(pod) {
                return None;
            }
        }
        None
    }

    /// A missing pod; its claims come first.
    fn make(&self, ordinal: i64, world: &mut World, now: Timestamp) -> Option<Move> {
        let name = format!("{}-{ordinal}", self.id.name);
        let namespace = self.id.namespace.clone();
        let templates = self.live.value["spec"]["volumeClaimTemplates"].as_array().cloned();
        for template in templates.unwrap_or_default() {
            let claim = template["metadata"]["name"].as_str().unwrap_or_default();
            let kind = KindRef::of::<PersistentVolumeClaim>(true);
            let id = ObjectId::new(kind, namespace.clone(), format!("{claim}-{name}"));
            if world.get(&id).is_none() {
                world.put(&id, pod::claim(&template, &id), now);
                return Some(Move { id, what: What::Made });
            }
        }
        let status = &self.live.value["status"];
        let old = ordinal < self.partition() && status["currentRevision"].is_string();
        let revision = &status[if old { "currentRevision" } else { "updateRevision" }];
        let id = ObjectId::new(KindRef::of::<Pod>(true), namespace, name);
        world.put(&id, pod::made(self.live, &id, revision.as_str().unwrap_or_default()), now);
        Some(Move { id, what: What::Made })
    }
}

/// Counts a set's pods into its status.
fn count(world: &mut World, id: &ObjectId, now: Timestamp) {
    let Some(live) = world.get(id).cloned() else { return };
    let set = Set::read(id, &live, world);
    let mut value = live.value.clone();
    let update = value["status"]["updateRevision"].clone();
    let updated =
        set.pods.values().filter(|(_, pod)| pod.label(REVISION_LABEL) == update.as_str()).count();
    let ready = set.pods.values().filter(|(_, pod)| pod::is_ready(pod)).count();
    let all = set.pods.len();
    let complete = updated == all && i64::try_from(ready) == Ok(set.replicas);
    let status = &mut value["status"];
    for (field, number) in [
        ("replicas", all),
        ("readyReplicas", ready),
        ("availableReplicas", ready),
        ("updatedReplicas", updated),
        ("currentReplicas", if complete { all } else { all - updated }),
    ] {
        status[field] = json!(number);
    }
    if complete || status["currentRevision"].is_null() {
        status["currentRevision"] = update;
    }
    world.put(id, value, now);
}

/// A Deployment or DaemonSet whose controller has not seen its generation: all done in one move.
fn at_once(world: &mut World, id: &ObjectId, now: Timestamp) -> Option<Move> {
    let live = world.get(id)?;
    if is_noticed(live) {
        return None;
    }
    let mut value = live.value.clone();
    let replicas = match id.kind.kind {
        "Deployment" => value["spec"]["replicas"].as_i64().unwrap_or(1),
        _ => value["status"]["desiredNumberScheduled"].as_i64().unwrap_or(1),
    };
    let generation = live.metadata.generation;
    let status = &mut value["status"];
    status["observedGeneration"] = json!(generation);
    for field in match id.kind.kind {
        "Deployment" => ["replicas", "readyReplicas", "availableReplicas", "updatedReplicas"],
        _ => ["desiredNumberScheduled", "numberReady", "numberAvailable", "updatedNumberScheduled"],
    } {
        status[field] = json!(replicas);
    }
    world.put(id, value, now);
    Some(Move { id: id.clone(), what: What::Noticed })
}
