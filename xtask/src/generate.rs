//! `cargo xtask generate`: files that are printed by the binary and kept in the checkout.
//!
//! Must not write a word of them itself: the binary knows its resources, its permissions and its
//! phases. `--check` compares and changes nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::tool;

/// A subcommand of the binary, and the file that its output is kept in.
struct Generated {
    subcommand: &'static str,
    path: &'static str,
}

const FILES: [Generated; 3] = [
    Generated { subcommand: "crds", path: "deploy/crds.yaml" },
    Generated { subcommand: "manifests", path: "deploy/steadfast.yaml" },
    Generated { subcommand: "docs", path: "docs/phases.md" },
];

/// Which selection of crates the binary is built in: features are merged over the selection, so that
/// another one compiles everything once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// The binary and what it needs.
    Alone,
    /// The selection of `cargo test --workspace`, all of which is there after the tests.
    WithTests,
}

/// Writes the files, or with `check` compares them.
pub(crate) fn run(root: &Path, check: bool, build: Build) -> Result<()> {
    let binary = binary(root, build)?;
    let mut stale = Vec::new();
    for file in FILES {
        let printed = print(root, &binary, file.subcommand)?;
        let path = root.join(file.path);
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        match difference(&kept, &printed) {
            None => println!("{}: as printed by `steadfast {}`", file.path, file.subcommand),
            Some(place) if check => stale.push(format!("{}: {place}", file.path)),
            Some(_) => {
                let write = std::fs::write(&path, printed);
                write.with_context(|| format!("write {}", path.display()))?;
                println!("{}: written", file.path);
            }
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    bail!("{}; run `cargo xtask generate`", stale.join("; "))
}

/// Builds the binary and says where it is.
fn binary(root: &Path, build: Build) -> Result<PathBuf> {
    let selection: &[&str] = match build {
        Build::Alone => &["--package", "steadfast"],
        Build::WithTests => &["--workspace", "--bins", "--tests"],
    };
    let mut command = tool::cargo(root, &["build", "--quiet"]);
    tool::must(command.args(selection).args(tool::binding(root)))?;
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let metadata: Value = serde_json::from_str(&tool::output(&mut tool::cargo(root, &arguments))?)?;
    let target = metadata["target_directory"].as_str().context("metadata without target folder")?;
    Ok(Path::new(target).join("debug/steadfast"))
}

fn print(root: &Path, binary: &Path, subcommand: &str) -> Result<String> {
    let text = tool::output(Command::new(binary).arg(subcommand).current_dir(root))?;
    if text.trim().is_empty() {
        bail!("`steadfast {subcommand}` printed nothing");
    }
    Ok(text)
}

/// The first line in which two texts differ.
fn difference(kept: &str, printed: &str) -> Option<String> {
    if kept == printed {
        return None;
    }
    let same = kept.lines().zip(printed.lines()).take_while(|(left, right)| left == right).count();
    let line = printed.lines().nth(same).unwrap_or("nothing more");
    Some(format!("differs from line {}, where the binary prints `{}`", same + 1, line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_different_line_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let place = difference("a\nb\n", "a\nc\n").expect("they differ");
        assert!(place.contains("line 2") && place.contains("`c`"), "{place}");
        assert!(difference("a\n", "a\nb\n").expect("they differ").contains("line 2"));
        assert!(difference("a\nb\n", "a\n").expect("they differ").contains("nothing more"));
        assert!(difference("a", "a\n").is_some());
    }
}
