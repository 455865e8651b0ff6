//! What a test does when the machine lacks the programs: it says so loudly, or fails where that was asked.

use std::io::Write;

use anyhow::{Context, Result, bail};

use crate::binaries::{self, Binaries};

/// The programs, or `None` after printing `SKIPPED`. Never builds: tests must not start a build of minutes.
/// With `STEADFAST_HERMETIC=1`, as in `cargo xtask check`, every test stands aside: that check needs no
/// programs of the machine.
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
    if is_set("STEADFAST_HERMETIC") {
        say_skipped("STEADFAST_HERMETIC=1 leaves out what needs programs of the machine")?;
        return Ok(None);
    }
    if let Some(found) = binaries::find().filter(|found| found.kube_controller_manager.is_some()) {
        return Ok(Some(found));
    }
    stand_aside(&format!("a real control plane's programs are not here: {REMEDY}"))?;
    Ok(None)
}

/// What becomes of a test that lacks something: `false` after printing `SKIPPED` and the reason.
///
/// # Errors
/// `STEADFAST_REQUIRE_ALL` is `1`: nothing may be skipped.
pub fn stand_aside(reason: &str) -> Result<bool> {
    if is_set("STEADFAST_REQUIRE_ALL") {
        bail!("STEADFAST_REQUIRE_ALL=1, and {reason}");
    }
    say_skipped(reason)?;
    Ok(false)
}

fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| value == "1")
}

/// Straight to standard error: the test harness hides what a passing test prints with the macros.
fn say_skipped(reason: &str) -> Result<()> {
    // In one piece, or the harness writes its own words into the middle.
    let line = format!("SKIPPED: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).context("say that a test was skipped")
}
