//! The environment of a container: exactly what its template says, over a small clean base.
//! Pure: the ConfigMaps and Secrets are handed in; nothing of this process's own environment leaks.

use crate::downward::{self, PodFacts};
use crate::expansion::expand;
use crate::sources::Sources;
use k8s_openapi::api::core::v1::{Container, EnvFromSource, EnvVarSource};
use std::collections::{BTreeMap, BTreeSet};

/// The variables of a container. Holds secrets: no `Debug` on purpose.
#[derive(Default)]
pub(crate) struct Variables {
    /// Values by name.
    pub(crate) values: BTreeMap<String, String>,
    /// Names whose value came straight from a Secret: such a value is never rewritten.
    pub(crate) verbatim: BTreeSet<String>,
}

/// Why a container's configuration cannot be made; `Display` is the kubelet's wording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A Secret that is needed does not exist.
    #[error("secret \"{0}\" not found")]
    NoSecret(String),
    /// A ConfigMap that is needed does not exist.
    #[error("configmap \"{0}\" not found")]
    NoConfigMap(String),
    /// A key is missing in a Secret that exists.
    #[error("couldn't find key {key} in Secret {namespace}/{name}")]
    NoSecretKey {
        /// The key asked for.
        key: String,
        /// Namespace of the Secret.
        namespace: String,
        /// Name of the Secret.
        name: String,
    },
    /// A key is missing in a ConfigMap that exists.
    #[error("couldn't find key {key} in ConfigMap {namespace}/{name}")]
    NoConfigMapKey {
        /// The key asked for.
        key: String,
        /// Namespace of the ConfigMap.
        namespace: String,
        /// Name of the ConfigMap.
        name: String,
    },
    /// A value is not text, which an environment variable has to be.
    #[error("key {key} of {of} is not valid UTF-8 text")]
    NotText {
        /// The key read.
        key: String,
        /// Kind and name of the object.
        of: String,
    },
    /// A field or resource reference that the node does not know.
    #[error("{0}")]
    Unsupported(String),
}

/// The variables of a container: `envFrom` first, then `env` in order, each with `$(NAME)` expanded.
///
/// Source of the rules: API documentation of `EnvVar` and `EnvFromSource`.
pub(crate) fn variables(
    container: &Container,
    pod: &PodFacts<'_>,
    sources: &Sources,
) -> Result<Variables, ConfigError> {
    let mut result = Variables::default();
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        for (key, value) in everything_of(from, sources)? {
            let name = format!("{prefix}{key}");
            if !name.is_empty() && !name.contains(['=', '\0']) {
                result.set(name, value, from.secret_ref.is_some());
            }
        }
    }
    for variable in container.env.iter().flatten() {
        match &variable.value_from {
            None => {
                let value = expand(variable.value.as_deref().unwrap_or_default(), &result.values);
                result.set(variable.name.clone(), value, false);
            }
            Some(from) => {
                if let Some(value) = one_value(from, container, pod, sources)? {
                    result.set(variable.name.clone(), value, from.secret_key_ref.is_some());
                }
            }
        }
    }
    Ok(result)
}

impl Variables {
    fn set(&mut self, name: String, value: String, verbatim: bool) {
        if verbatim {
            self.verbatim.insert(name.clone());
        } else {
            self.verbatim.remove(&name);
        }
        self.values.insert(name, value);
    }
}

fn everything_of(
    from: &EnvFromSource,
    sources: &Sources,
) -> Result<BTreeMap<String, String>, ConfigError> {
    if let Some(reference) = &from.config_map_ref {
        return match sources.config_maps.get(&reference.name) {
            Some(found) => Ok(found.data.clone().unwrap_or_default()),
            None if reference.optional == Some(true) => Ok(BTreeMap::new()),
            None => Err(ConfigError::NoConfigMap(reference.name.clone())),
        };
    }
    let Some(reference) = &from.secret_ref else { return Ok(BTreeMap::new()) };
    let Some(found) = sources.secrets.get(&reference.name) else {
        return match reference.optional {
            Some(true) => Ok(BTreeMap::new()),
            _ => Err(ConfigError::NoSecret(reference.name.clone())),
        };
    };
    let mut values = BTreeMap::new();
    for (key, value) in found.data.iter().flatten() {
        values.insert(key.clone(), text(&value.0, key, &format!("Secret {}", reference.name))?);
    }
    Ok(values)
}

fn one_value(
    from: &EnvVarSource,
    container: &Container,
    pod: &PodFacts<'_>,
    sources: &Sources,
) -> Result<Option<String>, ConfigError> {
    if let Some(field) = &from.field_ref {
        return downward::field(&field.field_path, pod).map(Some).map_err(ConfigError::Unsupported);
    }
    if let Some(resource) = &from.resource_field_ref {
        return downward::resource(resource, container).map(Some).map_err(ConfigError::Unsupported);
    }
    if let Some(wanted) = &from.config_map_key_ref {
        let optional = wanted.optional == Some(true);
        let Some(found) = sources.config_maps.get(&wanted.name) else {
            return if optional {
                Ok(None)
            } else {
                Err(ConfigError::NoConfigMap(wanted.name.clone()))
            };
        };
        return match found.data.as_ref().and_then(|data| data.get(&wanted.key)) {
            Some(value) => Ok(Some(value.clone())),
            None if optional => Ok(None),
            None => Err(ConfigError::NoConfigMapKey {
                key: wanted.key.clone(),
                namespace: pod.namespace.to_owned(),
                name: wanted.name.clone(),
            }),
        };
    }
    let Some(wanted) = &from.secret_key_ref else {
        return Err(ConfigError::Unsupported(
            "this kind of valueFrom is not supported by the node".to_owned(),
        ));
    };
    let optional = wanted.optional == Some(true);
    let Some(found) = sources.secrets.get(&wanted.name) else {
        return if optional { Ok(None) } else { Err(ConfigError::NoSecret(wanted.name.clone())) };
    };
    match found.data.as_ref().and_then(|data| data.get(&wanted.key)) {
        Some(value) => text(&value.0, &wanted.key, &format!("Secret {}", wanted.name)).map(Some),
        None if optional => Ok(None),
        None => Err(ConfigError::NoSecretKey {
            key: wanted.key.clone(),
            namespace: pod.namespace.to_owned(),
            name: wanted.name.clone(),
        }),
    }
}

fn text(bytes: &[u8], key: &str, of: &str) -> Result<String, ConfigError> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| ConfigError::NotText { key: key.to_owned(), of: of.to_owned() })
}

#[cfg(test)]
mod tests;
