//! Where a pod's volumes lie on this machine, and what each container sees of them.

use crate::expansion::expand;
use crate::image::entry_script::{INIT_FOLDER, SOCKET_FOLDER};
use crate::translate::PathMap;
use crate::user::RunUser;
use crate::volume::writer::create_folder;
use k8s_openapi::api::core::v1::{Container, PodSpec, Volume, VolumeMount};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File for the termination message unless the template names another.
pub(crate) const TERMINATION_FILE: &str = "/dev/termination-log";

/// What kind of thing is behind a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Behind {
    /// An empty folder that lives as long as the pod.
    Scratch,
    /// Content of the API, swapped whole.
    Content,
    /// The claim of this name.
    Claim(String),
}

/// Classifies a volume; the error names what the node cannot offer.
pub(crate) fn behind(volume: &Volume, pod_name: &str) -> Result<Behind, String> {
    if volume.empty_dir.is_some() {
        Ok(Behind::Scratch)
    } else if let Some(claim) = &volume.persistent_volume_claim {
        Ok(Behind::Claim(claim.claim_name.clone()))
    } else if volume.ephemeral.is_some() {
        Ok(Behind::Claim(format!("{pod_name}-{}", volume.name)))
    } else if volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.projected.is_some()
        || volume.downward_api.is_some()
    {
        Ok(Behind::Content)
    } else {
        Err("this node offers emptyDir, persistentVolumeClaim, configMap, secret, projected and downwardAPI \
             volumes only"
            .to_owned())
    }
}

/// The claims that a pod uses.
pub(crate) fn claim_names(spec: &PodSpec, pod_name: &str) -> Vec<String> {
    spec.volumes
        .iter()
        .flatten()
        .filter_map(|volume| match behind(volume, pod_name) {
            Ok(Behind::Claim(name)) => Some(name),
            _ => None,
        })
        .collect()
}

/// Folders of a pod's volumes by volume name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PodVolumes(pub(crate) BTreeMap<String, (Behind, PathBuf)>);

impl PodVolumes {
    /// What all containers of a pod mount, for text that belongs to no single container. The first
    /// container's view comes first.
    pub(crate) fn union_of_mounts(&self, spec: &PodSpec, first_root: &Path) -> PathMap {
        let mut union = PathMap::default();
        for container in spec.containers.iter().chain(spec.init_containers.iter().flatten()) {
            let mut own = PathMap::default();
            for mount in
                container.volume_mounts.iter().flatten().filter(|m| m.sub_path_expr.is_none())
            {
                if let Some((_, folder)) = self.0.get(&mount.name) {
                    own.mount(
                        &mount.mount_path,
                        below(folder, mount.sub_path.as_deref().unwrap_or_default()),
                    );
                }
            }
            union.add_missing(&own);
        }
        add_image_folders(&mut union, first_root);
        union
    }

    /// One container's view. Makes the folders it needs; content mounted by `subPath` is copied into the
    /// container's own folder, so that it stays as it was, which is what a kubelet's bind mount does.
    pub(crate) fn mounts_of(
        &self,
        container: &Container,
        variables: &BTreeMap<String, String>,
        root: &Path,
        owner: Option<&RunUser>,
    ) -> io::Result<PathMap> {
        let mut map = PathMap::default();
        for (number, mount) in container.volume_mounts.iter().flatten().enumerate() {
            let Some((kind, folder)) = self.0.get(&mount.name) else { continue };
            let part = sub_path(mount, variables);
            let host = below(folder, &part);
            match kind {
                Behind::Content if !part.is_empty() => {
                    let copy = root.join(format!("s{number}"));
                    copy_tree(&host, &copy, owner)?;
                    map.mount(&mount.mount_path, copy);
                }
                Behind::Scratch | Behind::Claim(_) => {
                    create_folder(&host, 0o755, owner)?;
                    map.mount(&mount.mount_path, host);
                }
                Behind::Content => map.mount(&mount.mount_path, host),
            }
        }
        let message_file =
            container.termination_message_path.as_deref().unwrap_or(TERMINATION_FILE);
        map.mount(message_file, root.join("t"));
        if let Some(data) = variables.get("PGDATA") {
            map.image_folder(data, root.join("data"));
        }
        add_image_folders(&mut map, root);
        for folder in IMAGE_FOLDERS {
            if let Some(host) = map.host_path(folder) {
                create_folder(&host, 0o755, owner)?;
            }
        }
        show_nested(&map, root, owner)?;
        Ok(map)
    }
}

/// Folders that the image brings, if only as mount points.
const IMAGE_FOLDERS: [&str; 4] = [SOCKET_FOLDER, INIT_FOLDER, "/tmp", "/var/lib/postgresql"];

/// A mount below a folder of the image shows in that folder's listing too, by a link: the entry point
/// lists its init folder, and templates mount single scripts into it.
fn show_nested(map: &PathMap, root: &Path, owner: Option<&RunUser>) -> io::Result<()> {
    for folder in IMAGE_FOLDERS {
        let Some(host) = map.host_path(folder).filter(|host| host.starts_with(root)) else {
            continue;
        };
        for (inside, target) in map.mounts_below(folder) {
            let link = below(&host, inside);
            if let Some(parent) = link.parent() {
                create_folder(parent, 0o755, owner)?;
            }
            std::os::unix::fs::symlink(target, link)?;
        }
    }
    Ok(())
}

/// Folders that the image brings when the template mounts nothing there.
fn add_image_folders(map: &mut PathMap, root: &Path) {
    const OTHER_SOCKET_FOLDER: &str = "/run/postgresql";
    let sockets = map
        .host_path(SOCKET_FOLDER)
        .or_else(|| map.host_path(OTHER_SOCKET_FOLDER))
        .unwrap_or_else(|| root.join("run"));
    map.image_folder(SOCKET_FOLDER, &sockets);
    map.image_folder(OTHER_SOCKET_FOLDER, &sockets);
    map.image_folder("/var/lib/postgresql", root.join("lib"));
    map.image_folder(INIT_FOLDER, root.join("init"));
    map.image_folder("/tmp", root.join("tmp"));
}

fn sub_path(mount: &VolumeMount, variables: &BTreeMap<String, String>) -> String {
    match (&mount.sub_path_expr, &mount.sub_path) {
        (Some(expression), _) => expand(expression, variables),
        (None, part) => part.clone().unwrap_or_default(),
    }
}

/// Joins a relative path without ever leaving the folder.
fn below(folder: &Path, part: &str) -> PathBuf {
    let steps = part.split('/').filter(|step| !step.is_empty() && *step != "." && *step != "..");
    steps.fold(folder.to_path_buf(), |path, step| path.join(step))
}

fn copy_tree(from: &Path, to: &Path, owner: Option<&RunUser>) -> io::Result<()> {
    if from.is_dir() {
        create_folder(to, 0o755, owner)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if !name.to_string_lossy().starts_with("..") {
                copy_tree(&from.join(&name), &to.join(&name), owner)?;
            }
        }
        return Ok(());
    }
    fs::copy(from, to)?;
    match owner {
        Some(user) => std::os::unix::fs::chown(to, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_container_sees_its_mounts_and_the_images_folders() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let (volume, root) = (place.path().join("v"), place.path().join("c"));
        fs::create_dir_all(volume.join("d")).expect("made");
        fs::write(volume.join("d/f"), "1").expect("written");
        let volumes = PodVolumes(BTreeMap::from([
            ("content".to_owned(), (Behind::Content, volume.clone())),
            ("data".to_owned(), (Behind::Claim("x".to_owned()), place.path().join("data"))),
        ]));
        let container: Container = serde_json::from_value(json!({"name": "m", "volumeMounts": [
            {"name": "content", "mountPath": "/etc/c"},
            {"name": "content", "mountPath": "/etc/one", "subPath": "d/f"},
            {"name": "content", "mountPath": "/docker-entrypoint-initdb.d/10.sql", "subPath": "d/f"},
            {"name": "data", "mountPath": "/data", "subPathExpr": "../$(NAME)"}]}))
        .expect("a container");
        let variables = BTreeMap::from([("NAME".to_owned(), "n".to_owned())]);
        fs::create_dir(&root).expect("made");
        let map = volumes.mounts_of(&container, &variables, &root, None).expect("made");
        assert_eq!(map.host_path("/etc/c/d/f"), Some(volume.join("d/f")));
        assert_eq!(map.host_path("/data/x"), Some(place.path().join("data/n/x")));
        assert_eq!(map.host_path("/run/postgresql"), Some(root.join("run")));
        let copied = map.host_path("/etc/one").expect("mounted");
        fs::write(volume.join("d/f"), "2").expect("written");
        assert_eq!(fs::read_to_string(copied).expect("there"), "1", "a subPath is not updated");
        let scripts = map.host_path(INIT_FOLDER).expect("the image brings it");
        assert_eq!(fs::read_to_string(scripts.join("10.sql")).expect("listed"), "1");
    }

    #[test]
    fn other_volumes_are_refused_in_words() {
        let volume: Volume =
            serde_json::from_value(json!({"name": "v", "hostPath": {"path": "/"}}))
                .expect("a volume");
        assert!(behind(&volume, "p").is_err());
    }
}
