//! `cargo xtask edges`: which crate may depend on which, and what the pure crates may reach.
//!
//! The rules are data (`table`, `xtask/pure-allow.txt`, `xtask/pure-clippy.toml`); this module asks
//! cargo for the facts. Must not build anything but the crates alone, when asked to.

mod graph;
mod imports;
mod manifests;
mod pure;
mod table;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::finding::conclude;
use crate::tool;
use crate::tree::Tree;
use graph::Graph;

pub(crate) use table::PURE;

/// Checks every edge of the dependency graph, and the manifests that declare them.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    let graph = Graph::read(root)?;
    let mut findings = table::check(&graph, table::ROWS);
    findings.extend(manifests::check(&tree));
    findings.extend(imports::check(&tree));
    findings.extend(pure::check_bans(&tree));
    let mut all = BTreeSet::new();
    for name in PURE {
        let linked = pure::linked(root, name)?;
        findings.extend(pure::check_closure(&tree, name, &linked));
        all.extend(linked);
    }
    findings.extend(pure::check_list(&tree, &all));
    conclude(findings)
}

/// Builds crates one by one, so that none leans on features that only a neighbour turns on.
pub(crate) fn alone(root: &Path, names: &[String]) -> Result<()> {
    let binding = tool::binding(root);
    for name in names {
        let arguments = ["check", "--quiet", "--package", name.as_str()];
        tool::must(tool::cargo(root, &arguments).args(&binding))?;
    }
    Ok(())
}

/// The names of all workspace crates.
pub(crate) fn members(root: &Path) -> Result<Vec<String>> {
    Ok(Graph::read(root)?.packages.into_iter().map(|package| package.name).collect())
}
