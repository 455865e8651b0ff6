//! `cargo xtask test`: the check, and then every test that needs programs of the machine.
//!
//! Must not decide for a test whether it can run: each test looks for what it needs and prints a line
//! with `SKIPPED` otherwise. What happened is said loudly at the end; with `--require-all` nothing
//! may be skipped.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result};

use crate::step::{Job, Outcome, Steps};
use crate::{check, tool};

/// Makes a test fail, where it would stand aside for lack of a program.
const REQUIRE_ALL: &str = "STEADFAST_REQUIRE_ALL";

/// A test target that needs programs of the machine, or more of its time than the check may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MachineTest {
    pub(crate) package: &'static str,
    /// File name below `tests` without its ending.
    pub(crate) target: &'static str,
    /// What the tests are about and what they need, for the table.
    pub(crate) needs: &'static str,
}

/// The test targets that `cargo xtask check` leaves out, wholly or in part. The longest first, so that
/// none is left to run alone at the end.
pub(crate) const MACHINE_TESTS: &[MachineTest] = &[
    MachineTest { package: "steadfast", target: "foresight", needs: TIME },
    MachineTest { package: "steadfast", target: "foresight_real", needs: BOTH },
    MachineTest { package: "steadfast", target: "node_outages", needs: NODE },
    MachineTest { package: "steadfast", target: "node_troubles", needs: NODE },
    MachineTest { package: "steadfast", target: "real_cluster", needs: BOTH },
    MachineTest { package: "steadfast", target: "real_permissions", needs: BOTH },
    MachineTest { package: "steadfast", target: "node_crashes", needs: NODE },
    MachineTest { package: "steadfast", target: "demo_template", needs: "PostgreSQL" },
    MachineTest { package: "steadfast", target: "node_compared", needs: NODE },
    MachineTest { package: "steadfast", target: "node_standbys", needs: NODE },
    MachineTest { package: "steadfast", target: "node_database", needs: NODE },
    MachineTest { package: "steadfast", target: "node_promotion", needs: NODE },
    MachineTest { package: "steadfast", target: "node_losses", needs: NODE },
    MachineTest { package: "testbed", target: "other_images", needs: NODE },
    MachineTest { package: "steadfast", target: "node_operator", needs: NODE },
    MachineTest { package: "sim", target: "conformance", needs: CONTROL_PLANE },
    MachineTest { package: "steadfast", target: "demo_ends", needs: "PostgreSQL" },
    MachineTest { package: "testbed", target: "node", needs: NODE },
    MachineTest { package: "testbed", target: "node_lifetime", needs: NODE },
    MachineTest { package: "testbed", target: "postgres_image", needs: NODE },
    MachineTest { package: "localnode", target: "standby", needs: BOTH },
    MachineTest { package: "localnode", target: "lifecycle", needs: BOTH },
    MachineTest { package: "testbed", target: "lifetime", needs: CONTROL_PLANE },
    MachineTest { package: "localnode", target: "lifetime", needs: BOTH },
    MachineTest { package: "localnode", target: "postgres", needs: BOTH },
    MachineTest { package: "testbed", target: "control_plane", needs: CONTROL_PLANE },
    MachineTest { package: "steadfast", target: "demo", needs: "PostgreSQL and kubectl" },
    MachineTest { package: "steadfast", target: "search_path", needs: "PostgreSQL" },
    MachineTest { package: "sim", target: "postgres_real", needs: "PostgreSQL" },
    MachineTest { package: "testbed", target: "stand_in", needs: CONTROL_PLANE },
    MachineTest { package: "localnode", target: "simulated", needs: "PostgreSQL" },
    MachineTest { package: "sim", target: "standby_real", needs: "PostgreSQL" },
    MachineTest { package: "sim", target: "kubectl", needs: "kubectl" },
    MachineTest { package: "sim", target: "kubectl_forward", needs: "kubectl" },
];

const BOTH: &str = "a real control plane and PostgreSQL";

const NODE: &str = "a real control plane, and root and packages for a node";

const CONTROL_PLANE: &str = "a real control plane";

const TIME: &str = "minutes of processor time; the check runs a part";

/// Runs the check and the tests of the machine.
pub(crate) fn run(root: &Path, require_all: bool, skip_check: bool) -> Result<()> {
    let mut steps = Steps::new();
    if !skip_check {
        check::add(&mut steps, root);
    }
    steps.run("control plane programs", || control_plane(require_all));
    let jobs = by_target(MACHINE_TESTS).into_iter().map(|(target, tests)| Job {
        name: titled(target, &tests),
        work: Box::new(move || run_one(root, target, require_all)),
    });
    steps.side_by_side(LANES, jobs.collect());
    steps.finish()
}

/// Test targets that run at a time. Each has a cluster of its own, which mostly waits.
const LANES: usize = 2;

fn titled(target: &str, tests: &[MachineTest]) -> String {
    let packages: Vec<_> = tests.iter().map(|test| test.package).collect();
    let needs = tests.first().map_or("", |test| test.needs);
    format!("{target} of {} ({needs})", packages.join(" and "))
}

/// The tests of one target name, which run together: cargo selects by name over the whole workspace.
/// In the order of the table.
fn by_target(tests: &[MachineTest]) -> Vec<(&str, Vec<MachineTest>)> {
    let mut targets: Vec<(&str, Vec<MachineTest>)> = Vec::new();
    for test in tests {
        match targets.iter_mut().find(|(target, _)| *target == test.target) {
            Some((_, same)) => same.push(*test),
            None => targets.push((test.target, vec![*test])),
        }
    }
    targets
}

/// PATH with the folder of the built kubectl behind all others: Debian has none that is new enough.
fn path_with_kubectl() -> Option<OsString> {
    let kubectl = testbed::binaries::find()?.kubectl?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(kubectl.parent().map(Path::to_path_buf));
    std::env::join_paths(folders).ok()
}

/// Finds the control plane's programs, or builds them where Go is installed.
fn control_plane(require_all: bool) -> Result<Outcome> {
    if testbed::binaries::find().is_none() && tool::on_path("go").is_none() {
        let reason =
            "neither the control plane's programs nor Go to build them are here".to_owned();
        return Ok(if require_all { Outcome::Failed(reason) } else { Outcome::Skipped(reason) });
    }
    let programs = testbed::binaries::ensure()?;
    Ok(Outcome::Noted(format!("Kubernetes {}", programs.kubernetes_version()?)))
}

/// Runs one target with its output shown, and gathers what it skipped.
fn run_one(root: &Path, target: &str, require_all: bool) -> Result<Outcome> {
    // The whole workspace is selected, though one target runs: a package alone would be built again
    // with features of its own, and everything below it too.
    let mut command =
        tool::cargo(root, &["test", "--quiet", "--workspace", "--no-fail-fast", "--test", target]);
    // Output is not captured: a skipped test passes, and its reason would be swallowed.
    command.args(tool::binding(root)).args(["--", "--nocapture"]);
    command.env_remove("STEADFAST_HERMETIC").env_remove(REQUIRE_ALL);
    if require_all {
        command.env(REQUIRE_ALL, "1");
    }
    if let Some(path) = path_with_kubectl() {
        command.env("PATH", path);
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("start cargo test")?;
    let (sender, lines) = mpsc::channel();
    let mut readers = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        readers.push(forward(stdout, sender.clone()));
    }
    if let Some(stderr) = child.stderr.take() {
        readers.push(forward(stderr, sender.clone()));
    }
    drop(sender);
    let mut skipped = Vec::new();
    for line in lines {
        println!("{target} | {line}");
        skipped.extend(skip_reason(&line));
    }
    let status = child.wait().context("wait for cargo test")?;
    drop(readers);
    Ok(judge(status.success(), &skipped, require_all))
}

/// Sends every line of a pipe, from a thread of its own so that neither pipe can fill up.
fn forward(
    pipe: impl Read + Send + 'static,
    sender: mpsc::Sender<String>,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    })
}

/// The reason in a line that says a test was skipped.
fn skip_reason(line: &str) -> Option<String> {
    let (_, reason) = line.split_once("SKIPPED")?;
    Some(reason.trim_start_matches([':', ' ']).to_owned())
}

/// How a target ended, from its exit status and what it skipped.
fn judge(success: bool, skipped: &[String], require_all: bool) -> Outcome {
    let mut reasons: Vec<_> = skipped.to_vec();
    reasons.sort();
    reasons.dedup();
    let text = format!("{} test(s) skipped: {}", skipped.len(), reasons.join("; "));
    match (success, skipped.is_empty()) {
        (false, _) => Outcome::Failed("see the output above".to_owned()),
        (true, true) => Outcome::Passed,
        (true, false) if require_all => Outcome::Failed(text),
        (true, false) => Outcome::Skipped(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_test_is_heard() {
        let line = "SKIPPED: needs a real control plane";
        assert_eq!(skip_reason(line).as_deref(), Some("needs a real control plane"));
        assert_eq!(skip_reason("test a ... ok"), None);
    }

    #[test]
    fn targets_of_one_name_run_together() {
        let test = |package| MachineTest { package, target: "lifetime", needs: "" };
        let tests = [test("testbed"), test("localnode")];
        let targets = by_target(&tests);
        assert_eq!(targets.len(), 1);
        assert_eq!((targets[0].0, targets[0].1.len()), ("lifetime", 2));
    }

    #[test]
    fn nothing_may_be_skipped_where_all_is_required() {
        let skipped = ["no postgres".to_owned()];
        assert_eq!(judge(true, &[], true), Outcome::Passed);
        assert!(matches!(judge(true, &skipped, false), Outcome::Skipped(_)));
        assert!(matches!(judge(true, &skipped, true), Outcome::Failed(_)));
        assert!(matches!(judge(false, &[], false), Outcome::Failed(_)));
    }
}
