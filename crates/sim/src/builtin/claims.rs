//! PersistentVolumeClaims and volumes: binding, provisioning, growth, protection, reclaim.
//!
//! Plays kube-controller-manager's claim and protection controllers and an external provisioner
//! with its resizer. Must not know pods beyond "uses this claim".

mod grow;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::door::{CLAIMS, Door, PODS, STORAGE_CLASSES, VOLUMES};
use super::{Controller, Model, after, earliest, field};
use crate::Core;
use crate::quantity::Quantity;

const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
const DEFAULT_CLASS: &str = "/metadata/annotations/storageclass.kubernetes.io~1is-default-class";
/// How often the claim controller looks at a claim that it can't serve.
const RESYNC_MILLIS: i64 = 15_000;

/// When the work on a claim or volume will be done, by uid and kind of work.
#[derive(Default)]
pub(super) struct Claims {
    work: BTreeMap<(String, &'static str), Timestamp>,
}

impl Controller for Claims {
    fn watches(&self) -> &'static [&'static str] {
        &["persistentvolumeclaims", "persistentvolumes", "pods", "storageclasses"]
    }

    fn sync(&mut self, core: &mut Core, model: &mut Model) -> Option<Timestamp> {
        let account = "persistent-volume-binder";
        let mut door = Door::controller(core, account, "persistentvolume-controller");
        let mut wake = None;
        for claim in door.list(CLAIMS, None) {
            let next = match field::deleting(&claim) {
                true => release(&mut door, claim),
                false if field::text(&claim, "/spec/volumeName").is_empty() => {
                    self.pending(&mut door, model, claim)
                }
                false => self.bound(&mut door, model, claim),
            };
            wake = earliest(wake, next);
        }
        for volume in door.list(VOLUMES, None) {
            wake = earliest(wake, self.volume(&mut door, model, volume));
        }
        self.forget(&door);
        wake
    }
}

impl Claims {
    /// Whether timed work is done; starts it when it has not begun.
    fn done(
        &mut self,
        model: &mut Model,
        uid: &str,
        what: &'static str,
        now: Timestamp,
    ) -> Result<(), Timestamp> {
        let entry = self.work.entry((uid.to_owned(), what));
        let at = *entry.or_insert_with(|| after(now, model.draw(model.speeds.volume.clone())));
        if at > now { Err(at) } else { Ok(()) }
    }

    fn forget(&mut self, door: &Door) {
        let mut alive: Vec<String> = Vec::new();
        for resource in [CLAIMS, VOLUMES] {
            let objects = door.core.store.list(resource.group, resource.plural, None);
            alive.extend(objects.map(|(_, object)| field::uid(object).to_owned()));
        }
        self.work.retain(|(uid, _), _| alive.contains(uid));
    }

    fn pending(
        &mut self,
        door: &mut Door,
        model: &mut Model,
        mut claim: Value,
    ) -> Option<Timestamp> {
        if let Some(class) =
            default_class(door).filter(|_| claim["spec"]["storageClassName"].is_null())
        {
            claim["spec"]["storageClassName"] = json!(field::name(&class));
            claim = door.update(CLAIMS, claim).ok()?;
        }
        if let Some(volume) = matching(door, &claim) {
            bind(door, claim, volume);
            return None;
        }
        let name = field::text(&claim, "/spec/storageClassName").to_owned();
        if name.is_empty() {
            let text = "no persistent volumes available for this claim and no storage class is set";
            return self.complain(door, &claim, "Normal", "FailedBinding", text);
        }
        let Some(class) = door.get(STORAGE_CLASSES, "", &name) else {
            let text = format!("storageclass.storage.k8s.io \"{name}\" not found");
            return self.complain(door, &claim, "Warning", "ProvisioningFailed", &text);
        };
        let waits = field::text(&class, "/volumeBindingMode") == "WaitForFirstConsumer";
        let selected = "/metadata/annotations/volume.kubernetes.io~1selected-node";
        if waits && field::text(&claim, selected).is_empty() {
            let text = "waiting for first consumer to be created before binding";
            return self.complain(door, &claim, "Normal", "WaitForFirstConsumer", text);
        }
        self.provision(door, model, claim, &class)
    }

    /// Says why a claim waits, once per resync period.
    fn complain(
        &mut self,
        door: &mut Door,
        claim: &Value,
        kind: &str,
        reason: &str,
        text: &str,
    ) -> Option<Timestamp> {
        let now = door.now();
        let entry = (field::uid(claim).to_owned(), "complaint");
        if let Some(at) = self.work.get(&entry).filter(|at| **at > now) {
            return Some(*at);
        }
        door.event(claim, kind, reason, text);
        let next = after(now, RESYNC_MILLIS);
        self.work.insert(entry, next);
        Some(next)
    }

    fn provision(
        &mut self,
        door: &mut Door,
        model: &mut Model,
        mut claim: Value,
        class: &Value,
    ) -> Option<Timestamp> {
        let provisioner = field::text(class, "/provisioner").to_owned();
        let mark = "volume.kubernetes.io/storage-provisioner";
        if field::strings(&claim, "/metadata/annotations").get(mark) != Some(&provisioner) {
            claim["metadata"]["annotations"][mark] = json!(provisioner);
            claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-provisioner"] =
                json!(provisioner);
            claim = door.update(CLAIMS, claim).ok()?;
            let text = format!(
                "Waiting for a volume to be created either by the external provisioner \
                 '{provisioner}' or manually by the system administrator. If volume creation is \
                 delayed, please verify that the provisioner is running and correctly registered."
            );
            door.event(&claim, "Normal", "ExternalProvisioning", &text);
        }
        if let Some(error) = model.provisioning.get(field::name(class)) {
            let text = format!(
                "failed to provision volume with StorageClass \"{}\": {error}",
                field::name(class)
            );
            return self.complain(door, &claim, "Warning", "ProvisioningFailed", &text);
        }
        let uid = field::uid(&claim).to_owned();
        if let Err(at) = self.done(model, &uid, "provision", door.now()) {
            return Some(at);
        }
        let made = door.create(VOLUMES, "", new_volume(&claim, class)).ok()?;
        let text = format!("Successfully provisioned volume {}", field::name(&made));
        door.event(&claim, "Normal", "ProvisioningSucceeded", &text);
        bind(door, claim, made);
        None
    }

    fn bound(&mut self, door: &mut Door, model: &mut Model, claim: Value) -> Option<Timestamp> {
        let volume = door.get(VOLUMES, "", field::text(&claim, "/spec/volumeName"));
        let Some(volume) = volume else {
            if field::text(&claim, "/status/phase") == "Bound" {
                let mut lost = claim.clone();
                lost["status"]["phase"] = json!("Lost");
                let _ = door.update_status(CLAIMS, lost);
                let text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
                door.event(&claim, "Warning", "ClaimLost", text);
            }
            return None;
        };
        if field::text(&claim, "/status/phase") != "Bound" {
            bind(door, claim, volume);
            return None;
        }
        self.grow(door, model, claim, volume)
    }

    fn volume(&mut self, door: &mut Door, model: &mut Model, volume: Value) -> Option<Timestamp> {
        let reference = &volume["spec"]["claimRef"];
        let claim =
            door.get(CLAIMS, field::text(reference, "/namespace"), field::text(reference, "/name"));
        let uid = field::text(reference, "/uid");
        let held = claim.as_ref().is_some_and(|claim| uid.is_empty() || field::uid(claim) == uid);
        if field::deleting(&volume) {
            let used =
                held && claim.is_some_and(|one| field::text(&one, "/status/phase") == "Bound");
            if !used && field::has_finalizer(&volume, VOLUME_PROTECTION) {
                let mut volume = volume;
                field::set_finalizer(&mut volume, VOLUME_PROTECTION, false);
                let _ = door.update(VOLUMES, volume);
            }
            return None;
        }
        if reference.is_null() {
            set_phase(door, volume, "Available");
            return None;
        }
        if held || uid.is_empty() {
            return None;
        }
        let name = field::name(&volume).to_owned();
        let deletes = field::text(&volume, "/spec/persistentVolumeReclaimPolicy") == "Delete";
        let uid = field::uid(&volume).to_owned();
        let volume = set_phase(door, volume, "Released")?;
        if !deletes {
            return None;
        }
        if let Err(at) = self.done(model, &uid, "delete", door.now()) {
            return Some(at);
        }
        model.volumes.destroy(&name);
        let _ = door.delete(VOLUMES, &volume);
        if let Some(mut volume) = door.get(VOLUMES, "", &name)
            && field::set_finalizer(&mut volume, VOLUME_PROTECTION, false)
        {
            let _ = door.update(VOLUMES, volume);
        }
        None
    }
}

/// Lets a deleted claim go when no pod uses it any more. A pod without a node does not count: the
/// kubelet starts none whose claim is going.
fn release(door: &mut Door, mut claim: Value) -> Option<Timestamp> {
    let used = door.list(PODS, Some(field::namespace(&claim))).iter().any(|pod| {
        let ended = matches!(field::text(pod, "/status/phase"), "Succeeded" | "Failed");
        let placed = !field::text(pod, "/spec/nodeName").is_empty();
        placed
            && !ended
            && field::list(pod, "/spec/volumes").iter().any(|volume| {
                field::text(volume, "/persistentVolumeClaim/claimName") == field::name(&claim)
            })
    });
    if !used && field::set_finalizer(&mut claim, CLAIM_PROTECTION, false) {
        let _ = door.update(CLAIMS, claim);
    }
    None
}

/// The default class: the newest one with the annotation, as the server picks it.
pub(super) fn default_class(door: &Door) -> Option<Value> {
    let mut classes = door.list(STORAGE_CLASSES, None);
    classes.retain(|class| field::text(class, DEFAULT_CLASS) == "true");
    classes.sort_by_key(|class| field::text(class, "/metadata/creationTimestamp").to_owned());
    classes.pop()
}

fn amount(object: &Value, pointer: &str) -> Option<i128> {
    Quantity::parse(field::text(object, pointer)).ok()?.scaled(0)
}

/// The smallest free volume of the claim's class that is large enough and offers its access.
fn matching(door: &Door, claim: &Value) -> Option<Value> {
    let wanted = amount(claim, "/spec/resources/requests/storage")?;
    let modes = field::list(claim, "/spec/accessModes");
    let mut fitting = door.list(VOLUMES, None);
    fitting.retain(|volume| {
        let reference = &volume["spec"]["claimRef"];
        let ours = reference["name"] == field::name(claim)
            && reference["namespace"] == field::namespace(claim)
            && (reference["uid"].is_null() || reference["uid"] == field::uid(claim));
        let class = field::text(volume, "/spec/storageClassName")
            == field::text(claim, "/spec/storageClassName");
        let offered = field::list(volume, "/spec/accessModes");
        let labels = field::labels(volume);
        let selected = claim["spec"].get("selector").is_none_or(|one| field::selects(one, &labels));
        let large = amount(volume, "/spec/capacity/storage").is_some_and(|size| size >= wanted);
        let free = reference.is_null() && field::text(volume, "/status/phase") != "Released";
        !field::deleting(volume)
            && (ours || free)
            && class
            && selected
            && large
            && modes.iter().all(|mode| offered.contains(mode))
    });
    fitting.into_iter().min_by_key(|volume| amount(volume, "/spec/capacity/storage"))
}

fn new_volume(claim: &Value, class: &Value) -> Value {
    let name = format!("pvc-{}", field::uid(claim));
    let provisioner = field::text(class, "/provisioner");
    let policy = match field::text(class, "/reclaimPolicy") {
        "" => "Delete",
        policy => policy,
    };
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "annotations": { "pv.kubernetes.io/provisioned-by": provisioner },
        },
        "spec": {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": { "storage": claim["spec"]["resources"]["requests"]["storage"] },
            "claimRef": claim_reference(claim),
            "csi": { "driver": provisioner, "volumeHandle": field::uid(claim) },
            "persistentVolumeReclaimPolicy": policy,
            "storageClassName": field::name(class),
            "volumeMode": "Filesystem",
        },
    })
}

fn claim_reference(claim: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": field::name(claim),
        "namespace": field::namespace(claim),
        "uid": field::uid(claim),
    })
}

fn bind(door: &mut Door, mut claim: Value, mut volume: Value) {
    volume["spec"]["claimRef"] = claim_reference(&claim);
    let Ok(volume) = door.update(VOLUMES, volume) else { return };
    let Some(volume) = set_phase(door, volume, "Bound") else { return };
    claim["spec"]["volumeName"] = json!(field::name(&volume));
    claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = json!("yes");
    claim["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] = json!("yes");
    let Ok(mut claim) = door.update(CLAIMS, claim) else { return };
    claim["status"]["phase"] = json!("Bound");
    claim["status"]["accessModes"] = volume["spec"]["accessModes"].clone();
    claim["status"]["capacity"] = volume["spec"]["capacity"].clone();
    let _ = door.update_status(CLAIMS, claim);
}

/// Sets a volume's phase; answers the volume as stored.
fn set_phase(door: &mut Door, mut volume: Value, phase: &str) -> Option<Value> {
    if field::text(&volume, "/status/phase") == phase {
        return Some(volume);
    }
    volume["status"]["phase"] = json!(phase);
    volume["status"]["lastPhaseTransitionTime"] = json!(field::stamp(door.now()));
    door.update_status(VOLUMES, volume).ok()
}
