//! Request sequences as data: what is sent, what is remembered for later steps, what is waited for.
//!
//! One file of `scenarios/` is one scenario, in a namespace of its own. Knows nothing of servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

/// One sequence of requests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// The file's name, which is also the end of the namespace's name.
    #[serde(skip)]
    pub(crate) name: String,
    /// What the sequence shows.
    pub(crate) about: String,
    /// The requests in order.
    pub(crate) steps: Vec<Step>,
}

/// One request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Unique in its scenario.
    pub(crate) name: String,
    /// Method and target. `$ns` is the scenario's namespace, `${name}` what an earlier step kept.
    pub(crate) send: String,
    /// Content type of the body: a short name of [`media`] or a full one.
    #[serde(default, rename = "type")]
    pub(crate) content_type: Option<String>,
    /// `Accept`; `application/json` unless told otherwise.
    #[serde(default)]
    pub(crate) accept: Option<String>,
    /// The body as JSON; its strings may name what was kept.
    #[serde(default)]
    pub(crate) body: Option<Value>,
    /// The body from a YAML file beside the folder of scenarios.
    #[serde(default)]
    pub(crate) file: Option<String>,
    /// Changes to that body, merged into it.
    #[serde(default)]
    pub(crate) also: Option<Value>,
    /// The body as text, for what is no JSON.
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// Names for values of the answer, by JSON pointer; they show as `<name>` in transcripts.
    #[serde(default)]
    pub(crate) keep: BTreeMap<String, String>,
    /// Asks again until every pointer shows its value; null stands for absent. Only the last answer counts.
    #[serde(default)]
    pub(crate) until: BTreeMap<String, Value>,
    /// Asks again until the status code is this one.
    #[serde(default)]
    pub(crate) until_code: Option<u16>,
    /// Compares only these parts of the answer, where the rest is known to be out of the simulator's reach.
    #[serde(default)]
    pub(crate) only: Vec<String>,
}

impl Step {
    /// Whether the request is repeated.
    pub(crate) fn polls(&self) -> bool {
        !self.until.is_empty() || self.until_code.is_some()
    }

    /// The body's media type.
    pub(crate) fn media(&self) -> &str {
        match self.content_type.as_deref().unwrap_or("json") {
            "json" => "application/json",
            "yaml" => "application/yaml",
            "apply" => "application/apply-patch+yaml",
            "merge" => "application/merge-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            "json-patch" => "application/json-patch+json",
            other => other,
        }
    }
}

/// The folder of this suite's data.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// Every scenario, in order of their names; only those that `CONFORMANCE_ONLY` lists, where it is set.
pub(crate) fn all() -> Result<Vec<Scenario>> {
    let only = std::env::var("CONFORMANCE_ONLY").unwrap_or_default();
    let wanted: Vec<&str> = only.split(',').filter(|name| !name.is_empty()).collect();
    let folder = folder().join("scenarios");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&folder).context("read the folder of scenarios")? {
        paths.push(entry.context("read the folder of scenarios")?.path());
    }
    paths.sort();
    let mut scenarios = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "yaml")) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if wanted.is_empty() || wanted.contains(&name.as_str()) {
            scenarios.push(read(path, name)?);
        }
    }
    Ok(scenarios)
}

fn read(path: &Path, name: String) -> Result<Scenario> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {name}"))?;
    let mut scenario: Scenario =
        serde_saphyr::from_str(&text).with_context(|| format!("understand {name}"))?;
    if scenario.about.is_empty() {
        bail!("{name} does not say what it shows");
    }
    let mut seen = std::collections::BTreeSet::new();
    for step in &scenario.steps {
        if !seen.insert(step.name.clone()) {
            bail!("{name} has two steps named {}", step.name);
        }
    }
    for step in &mut scenario.steps {
        if let Some(file) = &step.file {
            let text = std::fs::read_to_string(folder().join(file));
            let text = text.with_context(|| format!("read {file}"))?;
            let body: Result<Value, _> = serde_saphyr::from_str(&text);
            let mut body = body.with_context(|| format!("understand {file}"))?;
            if let Some(changes) = &step.also {
                json_patch::merge(&mut body, changes);
            }
            step.body = Some(body);
        }
    }
    scenario.name = name;
    Ok(scenario)
}
