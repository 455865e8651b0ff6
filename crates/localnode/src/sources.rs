//! The ConfigMaps and Secrets a pod refers to: which ones, and a snapshot of them.
//! Loading is the only I/O here; what is made of the values is decided in `environment` and `volume`.

use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, Secret, Volume};
use kube::{Api, Client};
use std::collections::{BTreeMap, BTreeSet};

/// A snapshot of the objects a pod reads; one that is missing in the cluster is missing here.
#[derive(Clone, Default)]
pub(crate) struct Sources {
    /// ConfigMaps by name.
    pub(crate) config_maps: BTreeMap<String, ConfigMap>,
    /// Secrets by name. Never printed: `Sources` has no `Debug` on purpose.
    pub(crate) secrets: BTreeMap<String, Secret>,
}

/// The names of the objects a pod reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct References {
    /// Names of ConfigMaps.
    pub(crate) config_maps: BTreeSet<String>,
    /// Names of Secrets.
    pub(crate) secrets: BTreeSet<String>,
}

impl References {
    /// Collects the names in volumes, `env` and `envFrom` of all containers.
    pub(crate) fn of(pod: &Pod) -> Self {
        let mut names = Self::default();
        let Some(spec) = &pod.spec else { return names };
        spec.volumes.iter().flatten().for_each(|volume| names.add_volume(volume));
        spec.init_containers
            .iter()
            .flatten()
            .chain(&spec.containers)
            .for_each(|c| names.add_container(c));
        names
    }

    fn add_volume(&mut self, volume: &Volume) {
        if let Some(source) = &volume.config_map {
            self.config_maps.insert(source.name.clone());
        }
        if let Some(name) = volume.secret.as_ref().and_then(|source| source.secret_name.clone()) {
            self.secrets.insert(name);
        }
        for part in volume.projected.iter().flat_map(|p| p.sources.iter().flatten()) {
            self.config_maps.extend(part.config_map.iter().map(|source| source.name.clone()));
            self.secrets.extend(part.secret.iter().map(|source| source.name.clone()));
        }
    }

    fn add_container(&mut self, container: &Container) {
        for from in container.env_from.iter().flatten() {
            self.config_maps.extend(from.config_map_ref.iter().map(|source| source.name.clone()));
            self.secrets.extend(from.secret_ref.iter().map(|source| source.name.clone()));
        }
        for from in
            container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref())
        {
            self.config_maps.extend(from.config_map_key_ref.iter().map(|key| key.name.clone()));
            self.secrets.extend(from.secret_key_ref.iter().map(|key| key.name.clone()));
        }
    }
}

impl Sources {
    /// Reads the named objects live. An object that does not exist is left out; any other failure is an
    /// error, since a failed read must never pass for an absent object.
    pub(crate) async fn load(
        client: &Client,
        namespace: &str,
        names: &References,
    ) -> kube::Result<Self> {
        let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let mut sources = Self::default();
        for name in &names.config_maps {
            if let Some(found) = config_maps.get_opt(name).await? {
                sources.config_maps.insert(name.clone(), found);
            }
        }
        for name in &names.secrets {
            if let Some(found) = secrets.get_opt(name).await? {
                sources.secrets.insert(name.clone(), found);
            }
        }
        Ok(sources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_that_can_name_an_object_is_looked_at() {
        let pod: Pod = serde_json::from_value(serde_json::json!({"spec": {
            "volumes": [
                {"name": "a", "configMap": {"name": "c1"}},
                {"name": "b", "secret": {"secretName": "s1"}},
                {"name": "p", "projected": {"sources": [
                    {"configMap": {"name": "c2"}}, {"secret": {"name": "s2"}}]}}],
            "initContainers": [{"name": "i", "envFrom": [
                {"configMapRef": {"name": "c3"}}, {"secretRef": {"name": "s3"}}]}],
            "containers": [{"name": "m", "env": [
                {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c4", "key": "k"}}},
                {"name": "Y", "valueFrom": {"secretKeyRef": {"name": "s4", "key": "k"}}}]}]}}))
        .expect("a pod");
        let names = References::of(&pod);
        assert_eq!(names.config_maps, ["c1", "c2", "c3", "c4"].map(str::to_owned).into());
        assert_eq!(names.secrets, ["s1", "s2", "s3", "s4"].map(str::to_owned).into());
    }
}
