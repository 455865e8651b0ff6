//! `cargo xtask check`: everything that needs neither a cluster nor the network, in one command.
//!
//! Must not install or start anything: tests that need programs of the machine stand aside here and
//! run in `cargo xtask test`.

use std::path::Path;

use anyhow::Result;

use crate::generate::Build;
use crate::step::{Outcome, Steps};
use crate::{edges, generate, licences, tidy, tool};

/// Tells tests that need programs of the machine to stand aside without a word.
const HERMETIC: &str = "STEADFAST_HERMETIC";

/// Runs every step and ends with the table.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut steps = Steps::new();
    add(&mut steps, root);
    steps.finish()
}

/// Adds the steps of the check to a longer run.
pub(crate) fn add(steps: &mut Steps, root: &Path) {
    steps
        .run("format", || passed(tool::must(&mut tool::cargo(root, &["fmt", "--all", "--check"]))));
    steps.run("tidy", || passed(tidy::run(root)));
    steps.run("edges", || passed(edges::run(root)));
    steps.run("licences", || licences::run(root));
    steps.run("pure crates alone", || passed(edges::alone(root, &edges::PURE.map(str::to_owned))));
    steps.run("clippy", || passed(clippy(root)));
    steps.run("hermetic tests", || passed(tests(root)));
    steps.run("generated files", || passed(generate::run(root, true, Build::WithTests)));
}

fn passed(result: Result<()>) -> Result<Outcome> {
    result.map(|()| Outcome::Passed)
}

fn clippy(root: &Path) -> Result<()> {
    let mut command =
        tool::cargo(root, &["clippy", "--workspace", "--all-targets", "--keep-going", "--quiet"]);
    tool::must(command.args(tool::binding(root)).args(["--", "-D", "warnings"]))
}

fn tests(root: &Path) -> Result<()> {
    let mut command = tool::cargo(root, &["test", "--workspace", "--quiet", "--no-fail-fast"]);
    command.args(tool::binding(root));
    command.env(HERMETIC, "1").env_remove("STEADFAST_REQUIRE_ALL");
    tool::must(&mut command)
}
