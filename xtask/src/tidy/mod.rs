//! `cargo xtask tidy`: the rules of the house that a program can check.
//!
//! Each check takes the tree and gives findings; none of them changes a file. Only
//! `--write-ratchet` writes, and only `xtask/ratchet.txt`.

mod architecture;
mod changelog;
mod lifted;
mod links;
mod machine_tests;
mod names;
mod ratchet;
mod size;
mod sleeps;
pub(crate) mod source;
mod text;

use std::path::Path;

use anyhow::{Context, Result};

use crate::finding::{Finding, conclude};
use crate::tree::Tree;

/// Where the sizes of today's oversize items are kept.
const RATCHET: &str = "xtask/ratchet.txt";

/// Runs every check over the checkout.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    print_aims(&tree);
    conclude(check(&tree))
}

/// Writes today's oversize items down, the bigger ones too: for a reviewed exception only.
pub(crate) fn write_ratchet(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    let text = ratchet::written(&size::oversize(&tree));
    std::fs::write(root.join(RATCHET), text).with_context(|| format!("write {RATCHET}"))
}

/// Every finding of every check.
fn check(tree: &Tree) -> Vec<Finding> {
    let listed = tree.file(RATCHET).map_or("", |file| file.text.as_str());
    let mut findings = ratchet::check(listed, &size::oversize(tree), RATCHET);
    for file in tree.rust() {
        findings.extend(text::header(file));
        match source::parse(&file.text) {
            Ok(source) => {
                findings.extend(names::reexports(file, &source));
                findings.extend(names::modules(file, &source));
                findings.extend(sleeps::check(file, &source));
                findings.extend(lifted::check(file, &source));
            }
            Err(error) => {
                let message = format!("cannot be parsed: {error}");
                findings.push(Finding::whole(&file.path, "source", message));
            }
        }
    }
    for file in &tree.files {
        findings.extend(text::markers(file));
        findings.extend(text::whitespace(file));
        findings.extend(text::machine_paths(file, &tree.root));
        findings.extend(names::path(file));
    }
    findings.extend(changelog::check(tree));
    findings.extend(links::check(tree));
    findings.extend(architecture::check(tree));
    findings.extend(machine_tests::check(tree));
    findings
}

/// Says how far the tree is from what the rules aim at, which is less than what they allow.
fn print_aims(tree: &Tree) {
    let aims = size::aims(tree);
    println!(
        "over the aim (not a breach): {} of {} files over {} lines, \
         {} of {} functions over {} lines, {} with more than {} parameters",
        aims.files_over,
        aims.files,
        size::AIM.file_lines,
        aims.functions_over,
        aims.functions,
        size::AIM.function_lines,
        aims.parameters_over,
        size::AIM.parameters,
    );
}
