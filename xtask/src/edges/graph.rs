//! The workspace's direct dependencies, as `cargo metadata` tells them.
//!
//! Must not judge them: the rules are in `table`.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::tool;

/// One crate of the workspace and the crates that it names in its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Linked into everything that uses the crate.
    pub(crate) normal: Vec<String>,
    /// Linked into its tests only.
    pub(crate) dev: Vec<String>,
    /// Used by its build script.
    pub(crate) build: Vec<String>,
}

/// All crates of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Graph {
    pub(crate) packages: Vec<Package>,
}

impl Graph {
    /// Asks cargo, without the network.
    pub(crate) fn read(root: &Path) -> Result<Graph> {
        let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
        let text = tool::output(&mut tool::cargo(root, &arguments))?;
        Graph::parse(&text)
    }

    fn parse(text: &str) -> Result<Graph> {
        let value: Value = serde_json::from_str(text).context("read cargo's metadata")?;
        let packages = value["packages"].as_array().context("metadata without packages")?;
        Ok(Graph { packages: packages.iter().map(package).collect() })
    }

    /// Whether this is a crate of the workspace.
    pub(crate) fn is_ours(&self, name: &str) -> bool {
        self.packages.iter().any(|package| package.name == name)
    }
}

fn package(value: &Value) -> Package {
    let of_kind = |kind: Option<&str>| -> Vec<String> {
        let all = value["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        let matching = all.iter().filter(|one| one["kind"].as_str() == kind);
        matching.filter_map(|one| one["name"].as_str()).map(str::to_owned).collect()
    };
    Package {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        normal: of_kind(None),
        dev: of_kind(Some("dev")),
        build: of_kind(Some("build")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_dependencies_are_told_apart() {
        let text = r#"{"packages": [{"name": "a", "dependencies": [
            {"name": "b", "kind": null}, {"name": "c", "kind": "dev"}, {"name": "d", "kind": "build"}
        ]}]}"#;
        let graph = Graph::parse(text).expect("valid metadata");
        let one = |name: &str| vec![name.to_owned()];
        let expected =
            Package { name: "a".to_owned(), normal: one("b"), dev: one("c"), build: one("d") };
        assert_eq!(graph.packages, [expected]);
        assert!(graph.is_ours("a"));
        assert!(!graph.is_ours("b"));
    }
}
