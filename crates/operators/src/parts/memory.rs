//! The stored status, read leniently: a field that does not fit is forgotten, not fatal.
//!
//! Anybody with the right can write a status by hand (fault catalogue G-57); what is forgotten is
//! seen again.

use phased::Live;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Reads `.status`.
pub(crate) fn status<S: DeserializeOwned + Default>(root: &Live) -> S {
    let Some(stored) = root.value.get("status") else { return S::default() };
    if let Ok(status) = serde_json::from_value(stored.clone()) {
        return status;
    }
    let Value::Object(fields) = stored else { return S::default() };
    let fits = |key: &String, value: &Value| {
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        serde_json::from_value::<S>(Value::Object(alone)).is_ok()
    };
    let kept: Map<String, Value> =
        fields.iter().filter(|(k, v)| fits(k, v)).map(|(k, v)| (k.clone(), v.clone())).collect();
    serde_json::from_value(Value::Object(kept)).unwrap_or_default()
}

/// A field that does not fit is as good as absent: a newer release's phase must not make the whole
/// resource unreadable (fault catalogue G-61).
///
/// # Errors
/// Only when the text is not JSON at all.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}
