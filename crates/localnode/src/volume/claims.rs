//! Folders of persistent volumes: one a volume, kept over the restarts of pods, removed with the volume.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Annotation by which a scheduler names the node for a claim.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The folders by the key of their volume. Names on disk are short numbers, since a socket's path may
/// have 107 bytes at most.
#[derive(Debug)]
pub(crate) struct ClaimFolders {
    root: PathBuf,
    next: u32,
    folders: BTreeMap<String, PathBuf>,
}

impl ClaimFolders {
    /// No folders yet; they will lie below `root`.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), next: 0, folders: BTreeMap::new() }
    }

    /// The folder of a volume, named now if it is new.
    pub(crate) fn folder_of(&mut self, key: &VolumeKey) -> PathBuf {
        let (root, next) = (&self.root, &mut self.next);
        self.folders
            .entry(key.0.clone())
            .or_insert_with(|| {
                *next += 1;
                root.join(next.to_string())
            })
            .clone()
    }

    /// Forgets a volume that is gone and returns the folder to remove.
    pub(crate) fn forget(&mut self, key: &VolumeKey) -> Option<PathBuf> {
        self.folders.remove(&key.0)
    }
}

/// What a folder belongs to: the volume, or, where the cluster shows no volume, the claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VolumeKey(String);

impl VolumeKey {
    /// The key of a volume object.
    pub(crate) fn of_volume(volume: &PersistentVolume) -> Self {
        Self(format!("volume {}", volume.metadata.uid.as_deref().unwrap_or_default()))
    }

    /// The key of a claim object.
    pub(crate) fn of_claim(claim: &PersistentVolumeClaim) -> Self {
        Self(format!("claim {}", claim.metadata.uid.as_deref().unwrap_or_default()))
    }
}

/// Whether a pod may use a claim, and which volume is behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClaimState {
    /// Bound to this volume.
    Bound(VolumeKey),
    /// Not yet: its storage class binds it once a node is chosen for its first pod.
    WaitingForConsumer,
    /// Not yet, for this reason in the scheduler's words.
    Waiting(String),
}

/// Reads a claim and its volume live.
pub(crate) async fn look(client: &Client, namespace: &str, name: &str) -> kube::Result<ClaimState> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let Some(claim) = claims.get_opt(name).await? else {
        return Ok(ClaimState::Waiting(format!("persistentvolumeclaim \"{name}\" not found")));
    };
    if claim.metadata.deletion_timestamp.is_some() {
        return Ok(ClaimState::Waiting(format!(
            "persistentvolumeclaim \"{name}\" is being deleted"
        )));
    }
    let Some(volume_name) = bound_volume(&claim) else {
        if waits_for_consumer(client, &claim).await? {
            return Ok(ClaimState::WaitingForConsumer);
        }
        return Ok(ClaimState::Waiting(
            "pod has unbound immediate PersistentVolumeClaims".to_owned(),
        ));
    };
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let key = match volumes.get_opt(volume_name).await? {
        Some(volume) => VolumeKey::of_volume(&volume),
        None => VolumeKey::of_claim(&claim),
    };
    Ok(ClaimState::Bound(key))
}

async fn waits_for_consumer(client: &Client, claim: &PersistentVolumeClaim) -> kube::Result<bool> {
    let spec = claim.spec.as_ref();
    let named = |name: Option<&String>| name.is_some_and(|name| !name.is_empty());
    let Some(class) = spec.and_then(|spec| spec.storage_class_name.as_deref()) else {
        return Ok(false);
    };
    if class.is_empty() || named(spec.and_then(|spec| spec.volume_name.as_ref())) {
        return Ok(false);
    }
    let classes: Api<StorageClass> = Api::all(client.clone());
    let mode = classes.get_opt(class).await?.and_then(|class| class.volume_binding_mode);
    Ok(mode.as_deref() == Some("WaitForFirstConsumer"))
}

/// Tells the provisioner of a claim which node its first pod goes to.
pub(crate) async fn select_node(
    client: &Client,
    namespace: &str,
    claim: &str,
    node: &str,
) -> kube::Result<()> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let found = claims.get(claim).await?;
    if found.annotations().get(SELECTED_NODE).is_none_or(|chosen| chosen != node) {
        let patch = serde_json::json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
        claims.patch(claim, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(())
}

fn bound_volume(claim: &PersistentVolumeClaim) -> Option<&str> {
    let bound = claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
    claim.spec.as_ref()?.volume_name.as_deref().filter(|name| bound && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_keeps_its_folder_until_it_is_forgotten() {
        let mut folders = ClaimFolders::new(Path::new("/s/c"));
        let (first, second) = (VolumeKey("volume a".into()), VolumeKey("volume b".into()));
        assert_eq!(folders.folder_of(&first), Path::new("/s/c/1"));
        assert_eq!(folders.folder_of(&second), Path::new("/s/c/2"));
        assert_eq!(folders.folder_of(&first), Path::new("/s/c/1"));
        assert_eq!(folders.forget(&first), Some("/s/c/1".into()));
        assert_eq!(folders.folder_of(&first), Path::new("/s/c/3"));
    }

    #[test]
    fn only_a_bound_claim_has_a_volume() {
        let claim = |phase: &str, volume: &str| -> PersistentVolumeClaim {
            serde_json::from_value(
                serde_json::json!({"spec": {"volumeName": volume}, "status": {"phase": phase}}),
            )
            .expect("a claim")
        };
        assert_eq!(bound_volume(&claim("Bound", "v")), Some("v"));
        assert_eq!(bound_volume(&claim("Pending", "v")), None);
        assert_eq!(bound_volume(&claim("Bound", "")), None);
    }
}
