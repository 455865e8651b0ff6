//! What the files of a configMap, secret, projected or downwardAPI volume contain. Pure.

use crate::downward::{self, PodFacts};
use crate::sources::Sources;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, DownwardAPIVolumeFile, KeyToPath, Pod, SecretVolumeSource,
    Volume, VolumeProjection,
};
use std::collections::BTreeMap;

/// Mode of a file when the template names none (API default).
const DEFAULT_MODE: i32 = 0o644;

/// The wanted content of one file.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct FileContent {
    /// The bytes as the API holds them. May be a secret: never printed.
    pub(crate) bytes: Vec<u8>,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Whether container paths inside are to be translated: text of ConfigMaps only.
    pub(crate) translated: bool,
}

/// All files of a volume by relative path.
pub(crate) type Payload = BTreeMap<String, FileContent>;

/// Service-account tokens asked for ahead of time, by the path of their file.
pub(crate) type Tokens = BTreeMap<String, String>;

/// What a payload is made from.
pub(crate) struct Material<'a> {
    /// The pod itself.
    pub(crate) pod: &'a Pod,
    /// Its fields for the downward API.
    pub(crate) facts: PodFacts<'a>,
    /// The ConfigMaps and Secrets it reads.
    pub(crate) sources: &'a Sources,
    /// Its service-account tokens.
    pub(crate) tokens: &'a Tokens,
}

/// The files of a volume, `None` when the volume is not made of API content, or the kubelet's words for
/// why it cannot be made.
pub(crate) fn of_volume(
    volume: &Volume,
    material: &Material<'_>,
) -> Result<Option<Payload>, String> {
    let mut files = Payload::new();
    if let Some(source) = &volume.config_map {
        add_config_map(&mut files, source, material)?;
    } else if let Some(source) = &volume.secret {
        add_secret(&mut files, source, material)?;
    } else if let Some(source) = &volume.downward_api {
        let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
        add_downward(&mut files, source.items.as_deref().unwrap_or_default(), mode, material)?;
    } else if let Some(source) = &volume.projected {
        let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
        for part in source.sources.iter().flatten() {
            add_projection(&mut files, part, mode, material)?;
        }
    } else {
        return Ok(None);
    }
    match files.keys().find(|path| !is_safe(path)) {
        Some(path) => Err(format!("invalid path {path:?}: must be relative and without '..'")),
        None => Ok(Some(files)),
    }
}

fn is_safe(path: &str) -> bool {
    !path.is_empty()
        && path.split('/').all(|part| !part.is_empty() && part != "..")
        && !path.starts_with("..")
}

fn add_projection(
    files: &mut Payload,
    part: &VolumeProjection,
    mode: i32,
    material: &Material<'_>,
) -> Result<(), String> {
    if let Some(source) = &part.config_map {
        let source = ConfigMapVolumeSource {
            name: source.name.clone(),
            items: source.items.clone(),
            optional: source.optional,
            default_mode: Some(mode),
        };
        return add_config_map(files, &source, material);
    }
    if let Some(source) = &part.secret {
        let source = SecretVolumeSource {
            secret_name: Some(source.name.clone()),
            items: source.items.clone(),
            optional: source.optional,
            default_mode: Some(mode),
        };
        return add_secret(files, &source, material);
    }
    if let Some(source) = &part.downward_api {
        return add_downward(files, source.items.as_deref().unwrap_or_default(), mode, material);
    }
    let Some(source) = &part.service_account_token else {
        return Err("this kind of projected source is not supported by the node".to_owned());
    };
    let token = material
        .tokens
        .get(&source.path)
        .ok_or_else(|| "no service account token could be had".to_owned())?;
    files.insert(source.path.clone(), secret_file(token.as_bytes(), DEFAULT_MODE));
    Ok(())
}

fn add_config_map(
    files: &mut Payload,
    source: &ConfigMapVolumeSource,
    material: &Material<'_>,
) -> Result<(), String> {
    let optional = source.optional == Some(true);
    let Some(found) = material.sources.config_maps.get(&source.name) else {
        return if optional {
            Ok(())
        } else {
            Err(format!("configmap \"{}\" not found", source.name))
        };
    };
    let default = source.default_mode.unwrap_or(DEFAULT_MODE);
    let mut all = BTreeMap::new();
    for (key, text) in found.data.iter().flatten() {
        all.insert(key.as_str(), (text.as_bytes(), true));
    }
    for (key, ByteString(bytes)) in found.binary_data.iter().flatten() {
        all.insert(key.as_str(), (bytes.as_slice(), false));
    }
    let chosen = choose(
        &all.keys().copied().collect::<Vec<_>>(),
        source.items.as_deref(),
        default,
        optional,
    )
    .map_err(|key| format!("configmap references non-existent config key: {key}"))?;
    for (key, path, mode) in chosen {
        let (bytes, translated) = all[key.as_str()];
        files.insert(
            path,
            FileContent { bytes: bytes.to_vec(), mode: permission(mode), translated },
        );
    }
    Ok(())
}

fn add_secret(
    files: &mut Payload,
    source: &SecretVolumeSource,
    material: &Material<'_>,
) -> Result<(), String> {
    let optional = source.optional == Some(true);
    let name = source.secret_name.as_deref().unwrap_or_default();
    let Some(found) = material.sources.secrets.get(name) else {
        return if optional { Ok(()) } else { Err(format!("secret \"{name}\" not found")) };
    };
    let data = found.data.clone().unwrap_or_default();
    let keys: Vec<&str> = data.keys().map(String::as_str).collect();
    let default = source.default_mode.unwrap_or(DEFAULT_MODE);
    let chosen = choose(&keys, source.items.as_deref(), default, optional)
        .map_err(|key| format!("references non-existent secret key: {key}"))?;
    for (key, path, mode) in chosen {
        files.insert(path, secret_file(&data[&key].0, mode));
    }
    Ok(())
}

/// Which keys become which files with which mode; an item naming no key is the error.
fn choose(
    keys: &[&str],
    items: Option<&[KeyToPath]>,
    default: i32,
    optional: bool,
) -> Result<Vec<(String, String, i32)>, String> {
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return Ok(keys
            .iter()
            .map(|key| ((*key).to_owned(), (*key).to_owned(), default))
            .collect());
    };
    let mut chosen = Vec::new();
    for item in items {
        if keys.contains(&item.key.as_str()) {
            chosen.push((item.key.clone(), item.path.clone(), item.mode.unwrap_or(default)));
        } else if !optional {
            return Err(item.key.clone());
        }
    }
    Ok(chosen)
}

fn add_downward(
    files: &mut Payload,
    items: &[DownwardAPIVolumeFile],
    default: i32,
    material: &Material<'_>,
) -> Result<(), String> {
    for item in items {
        let text = match (&item.field_ref, &item.resource_field_ref) {
            (Some(field), _) => downward::field(&field.field_path, &material.facts)?,
            (None, Some(wanted)) => {
                let name = wanted.container_name.as_deref().unwrap_or_default();
                let container = container_named(material.pod, name)
                    .ok_or_else(|| format!("container {name} not found"))?;
                downward::resource(wanted, container)?
            }
            (None, None) => String::new(),
        };
        let mode = permission(item.mode.unwrap_or(default));
        files.insert(
            item.path.clone(),
            FileContent { bytes: text.into_bytes(), mode, translated: false },
        );
    }
    Ok(())
}

fn container_named<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    spec.containers.iter().chain(spec.init_containers.iter().flatten()).find(|c| c.name == name)
}

/// A secret's file is for its owner to read and for nobody else: this machine has other users, which a
/// container has not.
fn secret_file(bytes: &[u8], mode: i32) -> FileContent {
    FileContent { bytes: bytes.to_vec(), mode: permission(mode) & 0o500 | 0o400, translated: false }
}

fn permission(mode: i32) -> u32 {
    mode.unsigned_abs() & 0o777
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(volume: Value) -> Result<Vec<(String, String, u32)>, String> {
        let volume: Volume = serde_json::from_value(volume).expect("a volume");
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "ns",
            "labels": {"a": "1", "b": "2"}}, "spec": {"containers": []}}))
        .expect("a pod");
        let sources = Sources {
            config_maps: BTreeMap::from([(
                "c".to_owned(),
                serde_json::from_value(json!({"data": {"k": "v"}, "binaryData": {"b": "YQ=="}}))
                    .expect("one"),
            )]),
            secrets: BTreeMap::from([(
                "s".to_owned(),
                serde_json::from_value(json!({"data": {"x": "aHVzaA=="}})).expect("one"),
            )]),
        };
        let tokens = Tokens::from([("token".to_owned(), "t".to_owned())]);
        let facts = PodFacts::of(&pod, None);
        let material = Material { pod: &pod, facts, sources: &sources, tokens: &tokens };
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let files = of_volume(&volume, &material)?.expect("made of API content");
        Ok(files.into_iter().map(|(path, file)| (path, text(file.bytes), file.mode)).collect())
    }

    fn file(path: &str, text: &str, mode: u32) -> (String, String, u32) {
        (path.to_owned(), text.to_owned(), mode)
    }

    #[test]
    fn files_follow_the_volume_source() {
        for (volume, expected) in [
            (
                json!({"name": "v", "configMap": {"name": "c"}}),
                vec![file("b", "a", 0o644), file("k", "v", 0o644)],
            ),
            (
                json!({"name": "v", "configMap": {"name": "c", "defaultMode": 0o555,
                    "items": [{"key": "k", "path": "d/f", "mode": 0o600}]}}),
                vec![file("d/f", "v", 0o600)],
            ),
            (json!({"name": "v", "configMap": {"name": "no", "optional": true}}), vec![]),
            (json!({"name": "v", "secret": {"secretName": "s"}}), vec![file("x", "hush", 0o400)]),
            (
                json!({"name": "v", "downwardAPI": {"items": [
                    {"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}),
                vec![file("l", "a=\"1\"\nb=\"2\"", 0o644)],
            ),
            (
                json!({"name": "v", "projected": {"sources": [
                    {"secret": {"name": "s"}}, {"serviceAccountToken": {"path": "token"}},
                    {"configMap": {"name": "c", "items": [{"key": "k", "path": "k"}]}}]}}),
                vec![file("k", "v", 0o644), file("token", "t", 0o400), file("x", "hush", 0o400)],
            ),
        ] {
            assert_eq!(check(volume), Ok(expected));
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        for (volume, expected) in [
            (json!({"name": "v", "configMap": {"name": "no"}}), "configmap \"no\" not found"),
            (json!({"name": "v", "secret": {"secretName": "no"}}), "secret \"no\" not found"),
            (
                json!({"name": "v", "configMap": {"name": "c", "items": [{"key": "z", "path": "z"}]}}),
                "configmap references non-existent config key: z",
            ),
            (
                json!({"name": "v", "secret": {"secretName": "s", "items": [{"key": "x", "path": "../x"}]}}),
                "invalid path \"../x\": must be relative and without '..'",
            ),
        ] {
            assert_eq!(check(volume), Err(expected.to_owned()));
        }
    }
}
