//! Volumes without a disk behind them: makes one for each claim, grows it, and removes it afterwards.
//!
//! Binding is left to the real controller: a volume that names its claim is enough for it.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::pods::is;
use super::{PROVISIONER, STORAGE_CLASS};

/// Written by the real controller on a claim that waits for a provisioner of its own.
const PROVISIONER_OF_CLAIM: &str = "volume.kubernetes.io/storage-provisioner";
/// Says who made a volume; the real controller then leaves its removal to that one.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// Creates the default storage class, unless it is there.
pub(crate) async fn create_storage_class(client: &Client) -> Result<()> {
    let class: StorageClass = serde_json::from_value(json!({
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "allowVolumeExpansion": true,
        "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Delete",
    }))
    .context("write a storage class")?;
    match Api::<StorageClass>::all(client.clone()).create(&PostParams::default(), &class).await {
        Err(error) if !is(&error, 409) => Err(error).context("create the storage class"),
        _ => Ok(()),
    }
}

/// Whether every byte that the claim asks for is there.
pub(crate) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
}

/// Makes the volume of a claim that waits for us, or grows it.
pub(crate) async fn settle(client: &Client, claim: &PersistentVolumeClaim) -> Result<()> {
    let outcome =
        if is_bound(claim) { grow(client, claim).await } else { provision(client, claim).await };
    match outcome {
        // Made before, or changed meanwhile: the watch tells of it.
        Err(error) if is(&error, 404) || is(&error, 409) => Ok(()),
        other => other.with_context(|| format!("claim {}", claim.name_any())),
    }
}

/// Removes a volume of ours whose claim has gone.
pub(crate) async fn clear(client: &Client, volume: &PersistentVolume) -> Result<()> {
    let released =
        volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Released");
    let policy =
        volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let ending = volume.metadata.deletion_timestamp.is_some();
    if !released || ending || policy != Some("Delete") || !is_ours(volume) {
        return Ok(());
    }
    let volumes = Api::<PersistentVolume>::all(client.clone());
    match volumes.delete(&volume.name_any(), &DeleteParams::default()).await {
        Err(error) if !is(&error, 404) => {
            Err(error).with_context(|| format!("volume {}", volume.name_any()))
        }
        _ => Ok(()),
    }
}

fn is_ours(volume: &PersistentVolume) -> bool {
    volume.annotations().get(PROVISIONED_BY).is_some_and(|provisioner| provisioner == PROVISIONER)
}

async fn provision(client: &Client, claim: &PersistentVolumeClaim) -> kube::Result<()> {
    let asked =
        claim.annotations().get(PROVISIONER_OF_CLAIM).is_some_and(|name| name == PROVISIONER);
    let ending = claim.metadata.deletion_timestamp.is_some();
    let (Some(uid), Some(spec), true, false) = (claim.uid(), &claim.spec, asked, ending) else {
        return Ok(());
    };
    let name = format!("pvc-{uid}");
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": requested(claim)},
            "accessModes": spec.access_modes,
            "volumeMode": spec.volume_mode,
            "storageClassName": spec.storage_class_name,
            "persistentVolumeReclaimPolicy": "Delete",
            "hostPath": {"path": format!("/nonexistent/{name}")},
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": claim.namespace(), "name": claim.name_any(), "uid": uid,
            },
        },
    });
    let volume: PersistentVolume =
        serde_json::from_value(volume).map_err(kube::Error::SerdeError)?;
    Api::all(client.clone()).create(&PostParams::default(), &volume).await.map(drop)
}

/// Gives a bound claim the size it asks for, volume first. The API server lets requests only grow.
async fn grow(client: &Client, claim: &PersistentVolumeClaim) -> kube::Result<()> {
    let capacity =
        claim.status.as_ref().and_then(|status| status.capacity.as_ref()?.get("storage"));
    let Some(wanted) = requested(claim).filter(|wanted| Some(wanted) != capacity) else {
        return Ok(());
    };
    let volumes = Api::<PersistentVolume>::all(client.clone());
    let Some(volume) = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref()) else {
        return Ok(());
    };
    if volumes.get_opt(volume).await?.is_none_or(|volume| !is_ours(&volume)) {
        return Ok(());
    }
    let patch = json!({"spec": {"capacity": {"storage": wanted}}});
    volumes.patch(volume, &PatchParams::default(), &Patch::Merge(patch)).await?;
    let claims = Api::<PersistentVolumeClaim>::namespaced(
        client.clone(),
        &claim.namespace().unwrap_or_default(),
    );
    let patch = json!({"status": {"capacity": {"storage": wanted}, "conditions": null}});
    claims
        .patch_status(&claim.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map(drop)
}

fn requested(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage").cloned()
}
