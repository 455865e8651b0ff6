//! Quantities by resource name, accepted as text or number, as Kubernetes accepts them.
//!
//! Must not interpret the amounts; the API server does.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// Amounts by resource name, such as `cpu: 500m`.
#[derive(Serialize, Clone, Debug, Default, PartialEq)]
#[serde(transparent)]
pub struct Amounts(pub BTreeMap<String, String>);

impl Amounts {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An amount as people write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Number(serde_json::Number),
}

impl<'de> Deserialize<'de> for Amounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = BTreeMap::<String, Written>::deserialize(deserializer)?;
        let text = |w| match w {
            Written::Text(text) => text,
            Written::Number(number) => number.to_string(),
        };
        Ok(Self(written.into_iter().map(|(name, w)| (name, text(w))).collect()))
    }
}
