//! Makes, grows and removes the volumes of claims whose StorageClass names this node's provisioner, for a
//! real control plane, which leaves that to others. A volume is an object only: its folder is made when a
//! pod first uses it, and removed by `watching` when the object goes. Sizes are recorded, not enforced.

use crate::quantity::thousandths;
use crate::volume::claims::SELECTED_NODE;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The `provisioner` of a StorageClass whose volumes are folders of a local node.
pub const PROVISIONER: &str = "steadfast.dev/local-node";

/// How soon what failed is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// Annotation by which the control plane asks a provisioner for a claim's volume.
const ASKED: &str = "volume.kubernetes.io/storage-provisioner";
/// Annotation that says who made a volume.
const MADE_BY: &str = "pv.kubernetes.io/provisioned-by";

/// Serves claims as long as it is awaited.
pub(crate) async fn run(client: Client, node: String, namespaces: Option<BTreeSet<String>>) {
    let config = watcher::Config::default;
    let mut claims = watcher(Api::<PersistentVolumeClaim>::all(client.clone()), config())
        .default_backoff()
        .applied_objects()
        .boxed();
    let mut volumes = watcher(Api::<PersistentVolume>::all(client.clone()), config())
        .default_backoff()
        .applied_objects()
        .boxed();
    let mut again: BTreeMap<String, Asked> = BTreeMap::new();
    loop {
        let asked: Vec<Asked> = tokio::select! {
            claim = claims.next() => match claim {
                Some(Ok(claim)) => vec![Asked::Claim(Box::new(claim))],
                // Interrupted watches come back by themselves, after their own pause.
                Some(Err(_)) => continue,
                None => return,
            },
            volume = volumes.next() => match volume {
                Some(Ok(volume)) => vec![Asked::Volume(Box::new(volume))],
                Some(Err(_)) => continue,
                None => return,
            },
            () = tokio::time::sleep(AGAIN), if !again.is_empty() => {
                std::mem::take(&mut again).into_values().collect()
            }
        };
        for asked in asked {
            let outcome = match &asked {
                Asked::Claim(claim) if is_ours(claim, namespaces.as_ref()) => {
                    serve(&client, &node, claim).await
                }
                Asked::Claim(_) => Ok(()),
                Asked::Volume(volume) => retire(&client, volume).await,
            };
            if let Err(error) = outcome {
                tracing::warn!(%error, "a volume could not be made, grown or removed yet");
                again.insert(asked.uid(), asked);
            }
        }
    }
}

/// An object that may call for something.
enum Asked {
    Claim(Box<PersistentVolumeClaim>),
    Volume(Box<PersistentVolume>),
}

impl Asked {
    fn uid(&self) -> String {
        match self {
            Self::Claim(claim) => claim.uid(),
            Self::Volume(volume) => volume.uid(),
        }
        .unwrap_or_default()
    }
}

fn is_ours(claim: &PersistentVolumeClaim, namespaces: Option<&BTreeSet<String>>) -> bool {
    let asked = claim.annotations().get(ASKED).is_some_and(|asked| asked == PROVISIONER);
    asked && namespaces.is_none_or(|all| all.contains(&claim.namespace().unwrap_or_default()))
}

async fn serve(client: &Client, node: &str, claim: &PersistentVolumeClaim) -> kube::Result<()> {
    let phase =
        claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    if claim.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    if phase == "Bound" {
        return grow(client, claim).await;
    }
    let class_name =
        claim.spec.as_ref().and_then(|spec| spec.storage_class_name.clone()).unwrap_or_default();
    let classes: Api<StorageClass> = Api::all(client.clone());
    let Some(class) = classes.get_opt(&class_name).await? else { return Ok(()) };
    let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    if waits && claim.annotations().get(SELECTED_NODE).is_none_or(|chosen| chosen != node) {
        return Ok(());
    }
    let Some(volume) = volume_for(claim, &class) else { return Ok(()) };
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    match volumes.create(&PostParams::default(), &volume).await {
        Err(kube::Error::Api(answer)) if answer.is_already_exists() => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// A volume bound to one claim from its birth. `None` when the claim asks for no storage.
fn volume_for(claim: &PersistentVolumeClaim, class: &StorageClass) -> Option<PersistentVolume> {
    let spec = claim.spec.as_ref()?;
    let size = requested(claim)?;
    let uid = claim.metadata.uid.as_deref()?;
    let policy = class.reclaim_policy.as_deref().unwrap_or("Delete");
    serde_json::from_value(json!({
        "metadata": {"name": format!("pvc-{uid}"), "annotations": {MADE_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": spec.access_modes,
            "storageClassName": class.name_any(),
            "persistentVolumeReclaimPolicy": policy,
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim.name_any(),
                "namespace": claim.namespace(), "uid": uid},
            // The kind that nothing has to attach. The path is a name only: no folder of the machine.
            "hostPath": {"path": format!("/{PROVISIONER}/{uid}")},
        },
    }))
    .ok()
}

fn requested(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage")
}

/// Records the new size of a claim that asks for more; the API server has checked that its class allows it.
async fn grow(client: &Client, claim: &PersistentVolumeClaim) -> kube::Result<()> {
    let has = claim.status.as_ref().and_then(|status| status.capacity.as_ref()?.get("storage"));
    let (Some(has), Some(wants)) = (has, requested(claim)) else { return Ok(()) };
    if thousandths(&wants.0) <= thousandths(&has.0) {
        return Ok(());
    }
    let capacity = json!({"storage": wants});
    let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default();
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let bigger = Patch::Merge(json!({"spec": {"capacity": capacity}}));
    volumes.patch(&volume, &PatchParams::default(), &bigger).await?;
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(client.clone(), &claim.namespace().unwrap_or_default());
    let done = Patch::Merge(json!({"status": {"capacity": capacity}}));
    claims.patch_status(&claim.name_any(), &PatchParams::default(), &done).await.map(drop)
}

/// Removes a volume of ours whose claim is gone, if its policy says so.
async fn retire(client: &Client, volume: &PersistentVolume) -> kube::Result<()> {
    let released =
        volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Released");
    let policy =
        volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let ours = volume.annotations().get(MADE_BY).is_some_and(|maker| maker == PROVISIONER);
    if !released || !ours || policy != Some("Delete") {
        return Ok(());
    }
    let parameters = DeleteParams {
        preconditions: Some(Preconditions { uid: volume.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    match volumes.delete(&volume.name_any(), &parameters).await {
        Err(kube::Error::Api(answer)) if answer.is_not_found() || answer.is_conflict() => Ok(()),
        outcome => outcome.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_made_for_one_claim() {
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "metadata": {"name": "data-db-0", "namespace": "ns", "uid": "u"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}))
        .expect("a claim");
        let class: StorageClass = serde_json::from_value(json!({
            "metadata": {"name": "local"}, "provisioner": PROVISIONER, "reclaimPolicy": "Retain"}))
        .expect("a class");
        let volume = volume_for(&claim, &class).expect("a volume");
        let spec = volume.spec.expect("its spec");
        assert_eq!(volume.metadata.name.as_deref(), Some("pvc-u"));
        assert_eq!(spec.claim_ref.and_then(|claim| claim.uid).as_deref(), Some("u"));
        assert_eq!(spec.persistent_volume_reclaim_policy.as_deref(), Some("Retain"));
        assert_eq!(spec.capacity.expect("capacity")["storage"].0, "1Gi");
    }
}
