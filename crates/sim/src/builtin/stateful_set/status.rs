//! The counters of a StatefulSet's status, as the real controller counts them.
//!
//! Must not write; `mod` writes what is computed here, and only if it differs.

use serde_json::{Value, json};

use super::pod::{Replica, running_and_available, running_and_ready};
use super::rollout::Sync;
use crate::builtin::field;

/// Counts replicas and condemned pods that exist.
pub(super) fn compute(sync: &Sync) -> Value {
    let current = field::name(&sync.revisions.current);
    let update = field::name(&sync.revisions.update);
    let min_ready = field::number(sync.set, "/spec/minReadySeconds", 0);
    let pods: Vec<&Replica> =
        sync.replicas.iter().chain(&sync.condemned).filter(|one| one.exists).collect();
    let count = |test: &dyn Fn(&Replica) -> bool| pods.iter().filter(|one| test(one)).count();
    let alive = |one: &Replica, name: &str| !one.terminating() && one.revision() == name;
    json!({
        "observedGeneration": field::number(sync.set, "/metadata/generation", 0),
        "replicas": pods.len(),
        "readyReplicas": count(&|one| running_and_ready(&one.pod)),
        "availableReplicas": count(&|one| running_and_available(&one.pod, sync.now, min_ready)),
        "currentReplicas": count(&|one| alive(one, current)),
        "updatedReplicas": count(&|one| alive(one, update)),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": sync.revisions.collisions,
    })
}

/// When every replica is updated and ready, the update revision becomes the current one.
pub(super) fn complete(set: &Value, status: &mut Value) {
    let wanted = field::number(set, "/spec/replicas", 1);
    let all = |member: &str| status[member].as_i64() == Some(wanted);
    let rolling = field::text(set, "/spec/updateStrategy/type") != "OnDelete";
    if rolling && all("updatedReplicas") && all("readyReplicas") && all("replicas") {
        status["currentReplicas"] = status["updatedReplicas"].clone();
        status["currentRevision"] = status["updateRevision"].clone();
    }
}

/// The status as it is stored: counters that are zero are left out, but those without `omitempty`.
pub(super) fn stored(status: &Value) -> Value {
    let mut stored = status.clone();
    for counter in ["readyReplicas", "currentReplicas", "updatedReplicas"] {
        if stored[counter] == 0 {
            field::remove(&mut stored, "", counter);
        }
    }
    stored
}
