//! What a container is given: environment and mounted files, resolved from the store.
//!
//! Must not start anything; a missing Secret or key is answered with the kubelet's own words.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::builtin::door::{CLAIMS, CONFIG_MAPS, Door, Resource, SECRETS};
use crate::builtin::field;

/// A volume of a pod, ready to be mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Read-only files by relative path.
    Files(BTreeMap<String, String>),
    /// Data, by identity.
    Data(String),
}

/// Volumes of a pod by name, or why they can't be set up.
pub(super) fn volumes(door: &Door, pod: &Value) -> Result<BTreeMap<String, Content>, String> {
    let mut found = BTreeMap::new();
    for volume in field::list(pod, "/spec/volumes") {
        let name = field::text(volume, "/name").to_owned();
        let failed =
            |why: String| format!("MountVolume.SetUp failed for volume \"{name}\" : {why}");
        let content = content(door, pod, volume).map_err(failed)?;
        found.insert(name.clone(), content);
    }
    Ok(found)
}

fn content(door: &Door, pod: &Value, volume: &Value) -> Result<Content, String> {
    let namespace = field::namespace(pod);
    if let Some(claim) = volume.get("persistentVolumeClaim") {
        let name = field::text(claim, "/claimName");
        let claim = door.get(CLAIMS, namespace, name);
        let claim = claim.ok_or_else(|| format!("persistentvolumeclaim \"{name}\" not found"))?;
        return Ok(Content::Data(field::text(&claim, "/spec/volumeName").to_owned()));
    }
    if let Some(source) = volume.get("projected") {
        let mut files = BTreeMap::new();
        for part in field::list(source, "/sources") {
            files.extend(files_of(door, pod, part)?.unwrap_or_default());
        }
        return Ok(Content::Files(files));
    }
    match files_of(door, pod, volume)? {
        Some(files) => Ok(Content::Files(files)),
        None => Ok(Content::Data(format!("{}/{}", field::uid(pod), field::text(volume, "/name")))),
    }
}

fn files_of(
    door: &Door,
    pod: &Value,
    source: &Value,
) -> Result<Option<BTreeMap<String, String>>, String> {
    let namespace = field::namespace(pod);
    if let Some(secret) = source.get("secret") {
        let name = match field::text(secret, "/secretName") {
            "" => field::text(secret, "/name"),
            name => name,
        };
        return keyed(door, SECRETS, namespace, name, secret).map(Some);
    }
    if let Some(map) = source.get("configMap") {
        return keyed(door, CONFIG_MAPS, namespace, field::text(map, "/name"), map).map(Some);
    }
    if let Some(downward) = source.get("downwardAPI") {
        let items = field::list(downward, "/items").iter();
        let files = items.map(|item| {
            let value = field_ref(pod, field::text(item, "/fieldRef/fieldPath"), "");
            (field::text(item, "/path").to_owned(), value)
        });
        return Ok(Some(files.collect()));
    }
    if source.get("serviceAccountToken").is_some() {
        return Ok(Some(BTreeMap::from([("token".to_owned(), "model".to_owned())])));
    }
    Ok(None)
}

fn keyed(
    door: &Door,
    resource: Resource,
    namespace: &str,
    name: &str,
    source: &Value,
) -> Result<BTreeMap<String, String>, String> {
    let optional = field::flag(source, "/optional");
    let kind = if resource == SECRETS { "secret" } else { "configmap" };
    let Some(object) = door.get(resource, namespace, name) else {
        return if optional {
            Ok(BTreeMap::new())
        } else {
            Err(format!("{kind} \"{name}\" not found"))
        };
    };
    let data = data(&object, resource);
    let items = field::list(source, "/items");
    if items.is_empty() {
        return Ok(data);
    }
    let mut files = BTreeMap::new();
    for item in items {
        let key = field::text(item, "/key");
        match data.get(key) {
            Some(value) => {
                files.insert(field::text(item, "/path").to_owned(), value.clone());
            }
            None if optional => {}
            None if resource == SECRETS => {
                return Err(format!("references non-existent secret key: {key}"));
            }
            None => return Err(format!("references non-existent config key: {key}")),
        }
    }
    Ok(files)
}

/// The values of a Secret or ConfigMap, decoded.
pub(super) fn data(object: &Value, resource: Resource) -> BTreeMap<String, String> {
    let mut data = field::strings(object, "/data");
    if resource == SECRETS {
        for value in data.values_mut() {
            let bytes = STANDARD.decode(value.as_bytes()).unwrap_or_default();
            *value = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    data
}

/// Mounted files by absolute path, and data mounts by mount path.
pub(super) fn mounts(
    container: &Value,
    volumes: &BTreeMap<String, Content>,
) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let (mut files, mut data) = (BTreeMap::new(), BTreeMap::new());
    for mount in field::list(container, "/volumeMounts") {
        let path = field::text(mount, "/mountPath").trim_end_matches('/');
        let sub = field::text(mount, "/subPath");
        match volumes.get(field::text(mount, "/name")) {
            Some(Content::Files(all)) => {
                for (name, text) in all {
                    let under = |rest: &str| match rest {
                        "" => path.to_owned(),
                        rest => format!("{path}/{}", rest.trim_start_matches('/')),
                    };
                    if sub.is_empty() {
                        files.insert(under(name), text.clone());
                    } else if let Some(rest) = name.strip_prefix(sub) {
                        files.insert(under(rest), text.clone());
                    }
                }
            }
            Some(Content::Data(identity)) => {
                let identity = match sub {
                    "" => identity.clone(),
                    sub => format!("{identity}/{sub}"),
                };
                data.insert(path.to_owned(), identity);
            }
            None => {}
        }
    }
    (files, data)
}

/// The environment of a container, or the message of `CreateContainerConfigError`.
pub(super) fn environment(
    door: &Door,
    pod: &Value,
    container: &Value,
    address: &str,
) -> Result<BTreeMap<String, String>, String> {
    let namespace = field::namespace(pod);
    let mut environment = BTreeMap::new();
    for source in field::list(container, "/envFrom") {
        let prefix = field::text(source, "/prefix");
        for (member, resource) in [("secretRef", SECRETS), ("configMapRef", CONFIG_MAPS)] {
            let Some(reference) = source.get(member) else { continue };
            let found =
                keyed(door, resource, namespace, field::text(reference, "/name"), reference)?;
            environment
                .extend(found.into_iter().map(|(key, value)| (format!("{prefix}{key}"), value)));
        }
    }
    for variable in field::list(container, "/env") {
        let name = field::text(variable, "/name").to_owned();
        let value = match variable.get("valueFrom") {
            None => Some(expand(field::text(variable, "/value"), &environment)),
            Some(source) => value_from(door, pod, source, address)?,
        };
        if let Some(value) = value {
            environment.insert(name, value);
        }
    }
    Ok(environment)
}

fn value_from(
    door: &Door,
    pod: &Value,
    source: &Value,
    address: &str,
) -> Result<Option<String>, String> {
    if let Some(path) = source.pointer("/fieldRef/fieldPath").and_then(Value::as_str) {
        return Ok(Some(field_ref(pod, path, address)));
    }
    let namespace = field::namespace(pod);
    for (member, resource) in [("secretKeyRef", SECRETS), ("configMapKeyRef", CONFIG_MAPS)] {
        let Some(reference) = source.get(member) else { continue };
        let (name, key) = (field::text(reference, "/name"), field::text(reference, "/key"));
        let optional = field::flag(reference, "/optional");
        let (kind, title) = match resource == SECRETS {
            true => ("secret", "Secret"),
            false => ("configmap", "ConfigMap"),
        };
        return match door.get(resource, namespace, name) {
            None if optional => Ok(None),
            None => Err(format!("{kind} \"{name}\" not found")),
            Some(object) => match data(&object, resource).remove(key) {
                Some(value) => Ok(Some(value)),
                None if optional => Ok(None),
                None => Err(format!("couldn't find key {key} in {title} {namespace}/{name}")),
            },
        };
    }
    // resourceFieldRef: the model has no cgroups, so the node's size stands in.
    Ok(Some("0".to_owned()))
}

fn field_ref(pod: &Value, path: &str, address: &str) -> String {
    let quoted = |prefix: &str, from: &str| {
        let key = path.strip_prefix(prefix)?.strip_suffix("']")?;
        Some(field::strings(pod, from).remove(key).unwrap_or_default())
    };
    if let Some(value) = quoted("metadata.labels['", "/metadata/labels") {
        return value;
    }
    if let Some(value) = quoted("metadata.annotations['", "/metadata/annotations") {
        return value;
    }
    match path {
        "status.podIP" | "status.podIPs" => address.to_owned(),
        "metadata.labels" | "metadata.annotations" => {
            let map = field::strings(pod, &format!("/{}", path.replace('.', "/")));
            let lines = map.iter().map(|(key, value)| format!("{key}=\"{value}\""));
            lines.collect::<Vec<_>>().join("\n")
        }
        other => field::text(pod, &format!("/{}", other.replace('.', "/"))).to_owned(),
    }
}

/// `$(NAME)` is replaced by an earlier variable, `$$(NAME)` is kept with one dollar.
pub(super) fn expand(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(tail) = rest.strip_prefix("$$") {
            out.push('$');
            rest = tail;
            continue;
        }
        let name = rest.strip_prefix("$(").and_then(|tail| tail.split_once(')'));
        match name.and_then(|(name, tail)| Some((known.get(name)?, tail))) {
            Some((value, tail)) => {
                out.push_str(value);
                rest = tail;
            }
            None => {
                out.push('$');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_expand_like_the_kubelet() {
        let known = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let cases = [
            ("$(A)", "1"),
            ("$$(A)", "$(A)"),
            ("$(B)", "$(B)"),
            ("x$A", "x$A"),
            ("$(A)$(A)", "11"),
        ];
        for (text, expected) in cases {
            assert_eq!(expand(text, &known), expected, "{text}");
        }
    }
}
