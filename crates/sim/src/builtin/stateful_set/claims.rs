//! A StatefulSet's PersistentVolumeClaims: made before the pod, kept or deleted by policy.
//!
//! Must not bind or provision anything; that is the claim controller's.

use serde_json::{Value, json};

use super::pod;
use crate::Failure;
use crate::builtin::door::{CLAIMS, Door, PODS};
use crate::builtin::field;

fn claim_name(set: &Value, template: &Value, ordinal: i64) -> String {
    format!("{}-{}-{ordinal}", field::name(template), field::name(set))
}

/// The pod's volumes: one per claim template, then those of the pod template.
pub(super) fn volumes(set: &Value, ordinal: i64) -> Vec<Value> {
    let templates = field::list(set, "/spec/volumeClaimTemplates");
    let mut volumes: Vec<Value> = templates
        .iter()
        .map(|template| {
            let claim = json!({ "claimName": claim_name(set, template, ordinal) });
            json!({ "name": field::name(template), "persistentVolumeClaim": claim })
        })
        .collect();
    let claimed = |volume: &&Value| {
        !templates.iter().any(|template| field::name(template) == field::text(volume, "/name"))
    };
    volumes.extend(field::list(set, "/spec/template/spec/volumes").iter().filter(claimed).cloned());
    volumes
}

/// Whether the pod mounts the claims that the set's templates name.
pub(super) fn volumes_match(set: &Value, pod: &Value, ordinal: i64) -> bool {
    field::list(set, "/spec/volumeClaimTemplates").iter().all(|template| {
        let wanted = claim_name(set, template, ordinal);
        field::list(pod, "/spec/volumes").iter().any(|volume| {
            field::text(volume, "/name") == field::name(template)
                && field::text(volume, "/persistentVolumeClaim/claimName") == wanted
        })
    })
}

/// Creates the claims of one pod that are not there yet.
pub(super) fn create_missing(
    door: &mut Door,
    set: &Value,
    pod: &Value,
    ordinal: i64,
) -> Result<(), Failure> {
    let namespace = field::namespace(set).to_owned();
    let mut errors = Vec::new();
    for template in field::list(set, "/spec/volumeClaimTemplates") {
        let name = claim_name(set, template, ordinal);
        match door.get(CLAIMS, &namespace, &name) {
            Some(claim) if field::deleting(&claim) => {
                errors.push(format!("pvc {name} is being deleted"));
            }
            Some(_) => {}
            None => {
                let made = door.create(CLAIMS, &namespace, wanted(set, template, &name));
                told(door, set, pod, &name, made.as_ref().err());
                if let Err(failure) = made {
                    errors.push(format!("failed to create PVC {name}: {}", failure.message));
                }
            }
        }
    }
    match errors.len() {
        0 => Ok(()),
        1 => Err(Failure::internal(errors.remove(0))),
        _ => Err(Failure::internal(format!("[{}]", errors.join(", ")))),
    }
}

/// Whether a claim of this pod still belongs to an earlier pod of the same name.
pub(super) fn stale(door: &Door, set: &Value, pod: &Value, ordinal: i64) -> bool {
    field::list(set, "/spec/volumeClaimTemplates").iter().any(|template| {
        let name = claim_name(set, template, ordinal);
        let Some(claim) = door.get(CLAIMS, field::namespace(set), &name) else { return false };
        field::list(&claim, "/metadata/ownerReferences").iter().any(|owner| {
            owner["kind"] == "Pod"
                && owner["name"] == field::name(pod)
                && owner["uid"] != field::uid(pod)
        })
    })
}

/// Brings a pod's claims under the owners that `persistentVolumeClaimRetentionPolicy` asks for.
pub(super) fn retain(
    door: &mut Door,
    set: &Value,
    ordinal: i64,
    condemned: bool,
) -> Result<(), Failure> {
    let namespace = field::namespace(set).to_owned();
    let pod_name = format!("{}-{ordinal}", field::name(set));
    for template in field::list(set, "/spec/volumeClaimTemplates") {
        let name = claim_name(set, template, ordinal);
        let Some(mut claim) = door.get(CLAIMS, &namespace, &name) else { continue };
        if field::deleting(&claim) {
            continue;
        }
        let pod = door.get(PODS, &namespace, &pod_name);
        let before = field::list(&claim, "/metadata/ownerReferences").to_vec();
        let wanted = owners(set, pod.as_ref(), condemned, &before);
        if wanted == before {
            continue;
        }
        if wanted.is_empty() {
            field::remove(&mut claim, "/metadata", "ownerReferences");
        } else {
            claim["metadata"]["ownerReferences"] = Value::Array(wanted);
        }
        door.update(CLAIMS, claim)?;
    }
    Ok(())
}

fn owners(set: &Value, pod: Option<&Value>, condemned: bool, before: &[Value]) -> Vec<Value> {
    let policy = "/spec/persistentVolumeClaimRetentionPolicy";
    let when_deleted = field::text(set, &format!("{policy}/whenDeleted")) == "Delete";
    let when_scaled = field::text(set, &format!("{policy}/whenScaled")) == "Delete";
    let mut owners: Vec<Value> = before
        .iter()
        .filter(|owner| {
            let ours = owner["uid"] == field::uid(set) || owner["kind"] == "Pod";
            !ours
        })
        .cloned()
        .collect();
    if when_scaled && condemned {
        owners.extend(pod.map(|pod| reference(pod, "v1", "Pod")));
    } else if when_deleted {
        owners.push(reference(set, "apps/v1", "StatefulSet"));
    }
    owners
}

fn reference(owner: &Value, api_version: &str, kind: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "name": field::name(owner),
        "uid": field::uid(owner),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

fn wanted(set: &Value, template: &Value, name: &str) -> Value {
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "namespace": field::namespace(set) },
        "spec": template["spec"],
    });
    let mut labels = field::map(template, "/metadata/labels");
    labels.extend(field::map(set, "/spec/selector/matchLabels"));
    claim["metadata"]["labels"] = Value::Object(labels);
    let annotations = field::map(template, "/metadata/annotations");
    if !annotations.is_empty() {
        claim["metadata"]["annotations"] = Value::Object(annotations);
    }
    claim
}

fn told(door: &mut Door, set: &Value, pod: &Value, claim: &str, failure: Option<&Failure>) {
    let (pod, name) = (field::name(pod), field::name(set));
    match failure {
        None => {
            let text = format!("Create Claim {claim} Pod {pod} in StatefulSet {name} success");
            door.event(set, "Normal", "SuccessfulCreate", &text);
        }
        Some(failure) => {
            let text = format!(
                "Create Claim {claim} for Pod {pod} in StatefulSet {name} failed error: {}",
                failure.message
            );
            door.event(set, "Warning", "FailedCreate", &text);
        }
    }
}

/// The ordinals whose claims a sync looks at: replicas and condemned pods.
pub(super) fn ordinal_of(set: &Value, pod: &Value) -> i64 {
    pod::ordinal(set, pod).unwrap_or(-1)
}
