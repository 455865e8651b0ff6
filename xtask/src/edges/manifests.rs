//! Manifests: every dependency has its reason beside it, its version in one place, and a use.
//!
//! Must not ask cargo: what is checked here is what a reader of the manifests sees.

use crate::finding::Finding;
use crate::tree::{TextFile, Tree};

const ROOT: &str = "Cargo.toml";

/// Checks the root manifest and those of all crates.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(root) = tree.file(ROOT) else {
        return vec![Finding::whole(ROOT, "manifest", "is missing".to_owned())];
    };
    findings.extend(reasons(root));
    let manifests = || {
        tree.files.iter().filter(|file| file.path.ends_with("/Cargo.toml") && is_crate(&file.path))
    };
    for manifest in manifests() {
        findings.extend(crate_manifest(manifest, tree));
    }
    for (number, name) in dependencies(root, "[workspace.dependencies]") {
        let used = manifests().any(|manifest| {
            manifest.text.lines().any(|line| key(line).is_some_and(|key| key == name))
        });
        if !used {
            let message = format!("no crate uses `{name}`: remove it");
            findings.push(Finding::at(ROOT, number, "manifest", message));
        }
    }
    findings
}

/// Whether a manifest belongs to a crate of the workspace, not to a sample deeper down.
fn is_crate(path: &str) -> bool {
    path == "xtask/Cargo.toml" || (path.starts_with("crates/") && path.split('/').count() == 3)
}

/// In the root, a comment stands above each dependency or group of dependencies.
fn reasons(root: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut explained = false;
    let mut inside = false;
    for (number, line) in root.lines() {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
        }
        if line.is_empty() || line.starts_with('[') {
            explained = false;
        } else if line.starts_with('#') {
            explained = true;
        } else if inside && !explained {
            let message = "no reason beside this dependency (rule 12)".to_owned();
            findings.push(Finding::at(ROOT, number, "manifest", message));
        }
    }
    findings
}

/// In a crate, lints and versions come from the root, and what is declared is used.
fn crate_manifest(manifest: &TextFile, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |line, message| {
        findings.push(Finding::at(&manifest.path, line, "manifest", message));
    };
    if !manifest.text.contains("[lints]\nworkspace = true\n") {
        find(0, "must take the workspace's lints: `[lints]`, `workspace = true`".to_owned());
    }
    for section in ["[dependencies]", "[dev-dependencies]", "[build-dependencies]"] {
        for (number, name) in dependencies(manifest, section) {
            let line = manifest.text.lines().nth(number - 1).unwrap_or_default();
            if !line.contains("workspace = true") {
                find(
                    number,
                    format!("`{name}` takes its version from the root: `workspace = true`"),
                );
            }
            if !mentioned(name, manifest, tree) {
                find(number, format!("`{name}` is declared and never used: remove it"));
            }
        }
    }
    findings
}

/// The dependencies of one section, each with its line.
fn dependencies<'a>(manifest: &'a TextFile, section: &'a str) -> Vec<(usize, &'a str)> {
    let mut inside = false;
    let mut found = Vec::new();
    for (number, line) in manifest.lines() {
        if line.starts_with('[') {
            inside = line == section;
        } else if let Some(name) = key(line).filter(|_| inside) {
            found.push((number, name));
        }
    }
    found
}

/// The key of `key = value` and of `key.workspace = true`.
fn key(line: &str) -> Option<&str> {
    let end = line.find([' ', '.', '='])?;
    let name = &line[..end];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (!name.is_empty() && name.chars().all(is_name) && line.contains('=')).then_some(name)
}

/// Whether any source of the crate writes the name of the dependency.
fn mentioned(name: &str, manifest: &TextFile, tree: &Tree) -> bool {
    let folder = manifest.path.trim_end_matches("Cargo.toml");
    let path = format!("{}::", name.replace('-', "_"));
    let renamed = format!("use {}", name.replace('-', "_"));
    tree.rust()
        .filter(|file| file.path.starts_with(folder))
        .any(|file| file.text.contains(&path) || file.text.contains(&renamed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sample;

    const GOOD_ROOT: &str = "[workspace.dependencies]\n# Objects.\nserde = \"1\"\n";
    const GOOD: &str = "[lints]\nworkspace = true\n\n[dependencies]\nserde.workspace = true\n";
    const USE: (&str, &str) = ("crates/a/src/lib.rs", "use serde::Serialize;\n");

    fn messages(root: &str, manifest: &str) -> Vec<String> {
        let tree = sample(&[(ROOT, root), ("crates/a/Cargo.toml", manifest), USE]);
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn good_manifests_hold() {
        assert_eq!(messages(GOOD_ROOT, GOOD), [""; 0]);
    }

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let root = GOOD_ROOT.replace("# Objects.\n", "");
        assert!(messages(&root, GOOD)[0].contains("no reason"));
    }

    #[test]
    fn a_dependency_that_no_crate_uses_is_found() {
        let root = format!("{GOOD_ROOT}# Errors.\nanyhow = \"1\"\n");
        assert!(messages(&root, GOOD)[0].contains("no crate uses `anyhow`"));
    }

    #[test]
    fn a_dependency_that_the_source_does_not_mention_is_found() {
        let root = format!("{GOOD_ROOT}# Errors.\nanyhow = \"1\"\n");
        let manifest = format!("{GOOD}anyhow.workspace = true\n");
        assert!(messages(&root, &manifest)[0].contains("never used"));
    }

    #[test]
    fn a_version_of_its_own_and_missing_lints_are_found() {
        let own = GOOD.replace("serde.workspace = true", "serde = \"1\"");
        assert!(messages(GOOD_ROOT, &own)[0].contains("takes its version from the root"));
        let bare = GOOD.replace("[lints]\nworkspace = true\n", "");
        assert!(messages(GOOD_ROOT, &bare)[0].contains("lints"));
    }
}
