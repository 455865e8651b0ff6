//! A dynamic volume provisioner for the nodes: a folder of this machine for each volume.
//!
//! It does the part of a CSI driver and its helpers that is seen through the API: makes a volume on the node that
//! the scheduler chose, lets it grow, and removes volume and folder when the claim has gone. A volume is as large as
//! its claim asks for where this machine has loop devices (`disk`); elsewhere its size is a promise only.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tracing::warn;

use super::disk;
use super::dns::apply;

/// Name of the default storage class.
pub const STORAGE_CLASS: &str = "local";
/// The provisioner's name, for storage classes of your own.
pub const PROVISIONER: &str = "steadfast.dev/local";

/// Written by the real controllers on a claim that waits for a provisioner of its own.
const PROVISIONER_OF_CLAIM: &str = "volume.kubernetes.io/storage-provisioner";
/// Written by the scheduler on a claim whose class waits for the first pod.
const NODE_OF_CLAIM: &str = "volume.kubernetes.io/selected-node";
/// Says who made a volume; the real controller then leaves its removal to that one.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Pause before a failed step is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// The provisioner: who it is to the API server, and where it puts volumes.
struct Provisioner {
    client: Client,
    folder: PathBuf,
}

/// A provisioner in a thread of its own, so that it outlives the test that happened to start the cluster. Ends
/// when it is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts a provisioner that puts volumes into `folder`.
    pub(crate) fn start(config: Config, folder: PathBuf) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("start a runtime")?;
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            let outcome = runtime.block_on(async {
                tokio::select! {
                    outcome = serve(config, folder) => outcome,
                    _ = stopped => Ok(()),
                }
            });
            if let Err(error) = outcome {
                warn!("the volume provisioner has ended: {error:#}");
            }
        };
        let thread = std::thread::Builder::new().name("volumes".to_owned()).spawn(work);
        let thread = thread.context("start the volume provisioner's thread")?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// Serves claims of our class until it is dropped.
///
/// # Errors
/// The storage class cannot be written.
pub async fn serve(config: Config, folder: PathBuf) -> Result<()> {
    let client = Client::try_from(config).context("build a client")?;
    Provisioner { client, folder }.run().await
}

impl Provisioner {
    async fn run(&self) -> Result<()> {
        let classes = Api::<StorageClass>::all(self.client.clone());
        apply(&classes, STORAGE_CLASS, &storage_class()).await?;
        let claims = Api::<PersistentVolumeClaim>::all(self.client.clone());
        let volumes = Api::<PersistentVolume>::all(self.client.clone());
        let watch = watcher::Config::default;
        let mut claim_changes =
            watcher(claims.clone(), watch()).default_backoff().applied_objects().boxed();
        let mut volume_changes =
            watcher(volumes.clone(), watch()).default_backoff().applied_objects().boxed();
        let mut failed = false;
        loop {
            let outcome = tokio::select! {
                Some(change) = claim_changes.next() => match change {
                    Ok(claim) => self.settle(&claim).await,
                    Err(error) => Err(error.into()),
                },
                Some(change) = volume_changes.next() => match change {
                    Ok(volume) => self.clear(&volume).await,
                    Err(error) => Err(error.into()),
                },
                () = tokio::time::sleep(RETRY), if failed => {
                    failed = false;
                    self.catch_up(&claims, &volumes).await
                }
            };
            if let Err(error) = &outcome {
                warn!("volume provisioner: {error:#}");
            }
            failed |= outcome.is_err();
        }
    }

    /// Looks at everything again, after something failed.
    async fn catch_up(
        &self,
        claims: &Api<PersistentVolumeClaim>,
        volumes: &Api<PersistentVolume>,
    ) -> Result<()> {
        for claim in claims.list(&kube::api::ListParams::default()).await? {
            self.settle(&claim).await?;
        }
        for volume in volumes.list(&kube::api::ListParams::default()).await? {
            self.clear(&volume).await?;
        }
        Ok(())
    }

    /// Makes the volume of a claim that waits for us, or grows it.
    async fn settle(&self, claim: &PersistentVolumeClaim) -> Result<()> {
        let asked = claim.annotations().get(PROVISIONER_OF_CLAIM);
        if asked.is_none_or(|name| name != PROVISIONER)
            || claim.metadata.deletion_timestamp.is_some()
        {
            return Ok(());
        }
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        let outcome = if phase == Some("Bound") {
            self.grow(claim).await
        } else {
            self.provision(claim).await
        };
        tolerate_stale(outcome).with_context(|| format!("claim {}", claim.name_any()))
    }

    async fn provision(&self, claim: &PersistentVolumeClaim) -> Result<()> {
        let Some(uid) = claim.uid() else { return Ok(()) };
        let name = format!("pvc-{uid}");
        let folder = self.folder.join(&name);
        disk::make(&folder, requested(claim).context("a claim asks for a size")?)?;
        // Containers run as any user.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).context("open a volume")?;
        let volume =
            serde_json::from_value(volume(claim, &name, &folder)).context("write a volume")?;
        let volumes = Api::<PersistentVolume>::all(self.client.clone());
        volumes.create(&PostParams::default(), &volume).await.map(drop).map_err(Into::into)
    }

    /// Gives a bound claim the size that it asks for, volume first. The API server lets requests only grow.
    async fn grow(&self, claim: &PersistentVolumeClaim) -> Result<()> {
        let capacity =
            claim.status.as_ref().and_then(|status| status.capacity.as_ref()?.get("storage"));
        let (Some(wanted), Some(volume)) = (requested(claim), volume_name(claim)) else {
            return Ok(());
        };
        if Some(wanted) == capacity {
            return Ok(());
        }
        disk::grow(&self.folder.join(volume), wanted)?;
        let capacity = json!({"storage": wanted});
        let volumes = Api::<PersistentVolume>::all(self.client.clone());
        let change = Patch::Merge(json!({"spec": {"capacity": capacity}}));
        volumes.patch(volume, &PatchParams::default(), &change).await?;
        let namespace = claim.namespace().unwrap_or_default();
        let claims = Api::<PersistentVolumeClaim>::namespaced(self.client.clone(), &namespace);
        let change = Patch::Merge(json!({"status": {"capacity": capacity}}));
        claims.patch_status(&claim.name_any(), &PatchParams::default(), &change).await?;
        Ok(())
    }

    /// Removes a volume of ours whose claim has gone.
    async fn clear(&self, volume: &PersistentVolume) -> Result<()> {
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        let spec = volume.spec.as_ref();
        let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        let made_by = volume.annotations().get(PROVISIONED_BY);
        let ours = made_by.is_some_and(|name| name == PROVISIONER);
        if !ours || phase != Some("Released") || policy != Some("Delete") {
            return Ok(());
        }
        let name = volume.name_any();
        disk::remove(&self.folder.join(&name)).with_context(|| format!("volume {name}"))?;
        let volumes = Api::<PersistentVolume>::all(self.client.clone());
        let outcome = volumes.delete(&name, &DeleteParams::default()).await;
        tolerate_stale(outcome.map(drop).map_err(Into::into))
            .with_context(|| format!("volume {name}"))
    }
}

/// Made before, gone or changed meanwhile: the watch tells of it.
fn tolerate_stale(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error) => match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
            _ => Err(error),
        },
        Ok(()) => Ok(()),
    }
}

fn requested(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage")
}

fn volume_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.spec.as_ref()?.volume_name.as_deref()
}

fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "allowVolumeExpansion": true,
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    })
}

/// A volume for a claim, on the node that was chosen for it; on any, if its class binds at once.
fn volume(claim: &PersistentVolumeClaim, name: &str, folder: &Path) -> Value {
    let spec = claim.spec.as_ref();
    let chosen = claim.annotations().get(NODE_OF_CLAIM);
    let requirement = match chosen {
        Some(node) => json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}),
        None => json!({"key": "kubernetes.io/hostname", "operator": "Exists"}),
    };
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": requested(claim)},
            "accessModes": spec.map(|spec| &spec.access_modes),
            "storageClassName": spec.map(|spec| &spec.storage_class_name),
            "persistentVolumeReclaimPolicy": "Delete",
            "local": {"path": folder},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": claim.namespace(),
                "name": claim.name_any(),
                "uid": claim.uid(),
            },
        },
    })
}
