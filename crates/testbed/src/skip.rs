//! What a test does when the machine lacks the programs: it says so loudly, or fails where that was asked.

use std::io::Write;

use anyhow::{Context, Result, bail};

use crate::binaries::{self, Binaries};

/// The programs, or `None` after printing `SKIPPED` (without a word under `STEADFAST_HERMETIC=1`). Never builds: tests must not start a build of minutes.
///
/// ```no_run
/// # fn main() -> anyhow::Result<()> {
/// let Some(binaries) = testbed::require_or_skip()? else { return Ok(()) };
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The programs are missing and `STEADFAST_REQUIRE_ALL` is `1`, as in CI (design.md section 5).
pub fn require_or_skip() -> Result<Option<Binaries>> {
    const REMEDY: &str = "run `cargo xtask cluster build`, or set KUBEBUILDER_ASSETS";
    // `cargo xtask check` leaves these tests to `cargo xtask test`, which runs each of them once.
    if std::env::var("STEADFAST_HERMETIC").is_ok_and(|value| value == "1") {
        return Ok(None);
    }
    if let Some(found) = binaries::find().filter(|found| found.kube_controller_manager.is_some()) {
        return Ok(Some(found));
    }
    if std::env::var("STEADFAST_REQUIRE_ALL").is_ok_and(|value| value == "1") {
        bail!("no control plane programs, and STEADFAST_REQUIRE_ALL=1: {REMEDY}");
    }
    // Straight to standard error: the test harness hides what a passing test prints with the macros.
    let loudly = writeln!(std::io::stderr(), "SKIPPED: a real control plane's programs are not here: {REMEDY}");
    loudly.context("say that a test was skipped")?;
    Ok(None)
}
