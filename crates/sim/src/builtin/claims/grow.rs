//! Growth of a bound claim: the external resizer enlarges the volume, then the node of a pod that
//! mounts it enlarges the file system.
//!
//! Must not ask whether the class allows it; the claim's update would have been refused.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Claims, amount};
use crate::Core;
use crate::builtin::door::{CLAIMS, Door, PODS, VOLUMES};
use crate::builtin::{Model, field};

const STATE: &str = "/status/allocatedResourceStatuses/storage";
const RESIZING: &str = "Resizing";
const PENDING: &str = "FileSystemResizePending";
const FAILED: &str = "ControllerResizeError";

impl Claims {
    /// Takes the next step of a claim that asks for more than it has.
    pub(super) fn grow(
        &mut self,
        door: &mut Door,
        model: &mut Model,
        claim: Value,
        volume: Value,
    ) -> Option<Timestamp> {
        let wanted = amount(&claim, "/spec/resources/requests/storage")?;
        let has = amount(&claim, "/status/capacity/storage")?;
        let state = field::text(&claim, STATE).to_owned();
        // A volume without a driver has no resizer either.
        if wanted <= has || volume["spec"]["csi"].is_null() {
            return None;
        }
        let allocated = amount(&claim, "/status/allocatedResources/storage").unwrap_or(has);
        if state == "NodeResizePending" && allocated >= wanted {
            return self.grow_on_node(door, model, claim);
        }
        let mut resizer = Door::component(door.core, "external-resizer", "external-resizer");
        if state != "ControllerResizeInProgress" || allocated != wanted {
            return begin(&mut resizer, claim, &volume);
        }
        self.grow_volume(&mut resizer, model, claim, volume)
    }

    fn grow_volume(
        &mut self,
        door: &mut Door,
        model: &mut Model,
        mut claim: Value,
        mut volume: Value,
    ) -> Option<Timestamp> {
        let class = field::text(&claim, "/spec/storageClassName").to_owned();
        if let Some(error) = model.resizing.get(&class) {
            let driver = field::text(&volume, "/spec/csi/driver");
            let text = format!(
                "resize volume \"{}\" by resizer \"{driver}\" failed: {error}",
                field::name(&volume)
            );
            let told = condition(&mut claim, FAILED, &text, door.now());
            if told {
                door.update_status(CLAIMS, claim.clone()).ok()?;
            }
            return self.complain(door, &claim, "Warning", "VolumeResizeFailed", &text);
        }
        let uid = field::uid(&claim).to_owned();
        if let Err(at) = self.done(model, &uid, "grow", door.now()) {
            return Some(at);
        }
        self.work.remove(&(uid, "grow"));
        let size = claim["spec"]["resources"]["requests"]["storage"].clone();
        if volume["spec"]["capacity"]["storage"] != size {
            volume["spec"]["capacity"]["storage"] = size;
            door.update(VOLUMES, volume).ok()?;
        }
        claim["status"]["allocatedResourceStatuses"] = json!({ "storage": "NodeResizePending" });
        claim["status"]["conditions"] = json!([]);
        let text = "Waiting for user to (re-)start a pod to finish file system resize of volume on \
                    node.";
        condition(&mut claim, PENDING, text, door.now());
        let claim = door.update_status(CLAIMS, claim).ok()?;
        let text = "Require file system resize of volume on node";
        door.event(&claim, "Normal", "FileSystemResizeRequired", text);
        None
    }

    fn grow_on_node(
        &mut self,
        door: &mut Door,
        model: &mut Model,
        mut claim: Value,
    ) -> Option<Timestamp> {
        let node = mounted_on(door.core, model, &claim)?;
        let uid = field::uid(&claim).to_owned();
        if let Err(at) = self.done(model, &uid, "grow-node", door.now()) {
            return Some(at);
        }
        self.work.remove(&(uid, "grow-node"));
        let user = format!("system:node:{node}");
        let mut kubelet = Door::component(door.core, &user, "kubelet");
        claim["status"]["capacity"]["storage"] =
            claim["status"]["allocatedResources"]["storage"].clone();
        for member in ["conditions", "allocatedResourceStatuses"] {
            field::remove(&mut claim, "/status", member);
        }
        let claim = kubelet.update_status(CLAIMS, claim).ok()?;
        let volume = field::text(&claim, "/spec/volumeName");
        let text = format!("MountVolume.NodeExpandVolume succeeded for volume \"{volume}\" {node}");
        kubelet.event(&claim, "Normal", "FileSystemResizeSuccessful", &text);
        None
    }
}

fn begin(door: &mut Door, mut claim: Value, volume: &Value) -> Option<Timestamp> {
    claim["status"]["allocatedResources"] = json!({
        "storage": claim["spec"]["resources"]["requests"]["storage"],
    });
    claim["status"]["allocatedResourceStatuses"] = json!({
        "storage": "ControllerResizeInProgress",
    });
    claim["status"]["conditions"] = json!([]);
    condition(&mut claim, RESIZING, "", door.now());
    let claim = door.update_status(CLAIMS, claim).ok()?;
    let text = format!("External resizer is resizing volume {}", field::name(volume));
    door.event(&claim, "Normal", "Resizing", &text);
    None
}

/// Adds a condition; false when it says so already.
fn condition(claim: &mut Value, kind: &str, text: &str, now: Timestamp) -> bool {
    let mut conditions = field::list(claim, "/status/conditions").to_vec();
    if conditions.iter().any(|one| one["type"] == kind && field::text(one, "/message") == text) {
        return false;
    }
    conditions.retain(|one| one["type"] != kind);
    let mut condition = json!({
        "type": kind,
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": field::stamp(now),
    });
    if !text.is_empty() {
        condition["message"] = json!(text);
    }
    conditions.push(condition);
    claim["status"]["conditions"] = json!(conditions);
    true
}

/// The node, with a kubelet that answers, of a pod whose volumes are mounted.
fn mounted_on(core: &mut Core, model: &Model, claim: &Value) -> Option<String> {
    let door = Door::component(core, "", "");
    let pods = door.shared(PODS, Some(field::namespace(claim)));
    let pod = pods.into_iter().find(|pod| {
        let alive = !model.down.contains(field::text(pod, "/spec/nodeName"));
        let mounted = field::is_true(pod, "PodReadyToStartContainers");
        alive
            && mounted
            && field::list(pod, "/spec/volumes").iter().any(|volume| {
                field::text(volume, "/persistentVolumeClaim/claimName") == field::name(claim)
            })
    })?;
    Some(field::text(&pod, "/spec/nodeName").to_owned())
}
