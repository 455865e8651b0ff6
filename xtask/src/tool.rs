//! Runs the programs that the checks are made of, cargo above all.
//!
//! Must not interpret their output beyond success, failure and the lines asked for.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A cargo command in the root of the checkout, with the toolchain that runs us.
///
/// The lock file is binding. Colours are left to cargo.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root);
    // The outer `cargo run` tells us about our own package. Build scripts watch these variables (ring's
    // does), so handing them on would build half of the dependencies again at each change of sides.
    let told = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    for name in std::env::vars_os().map(|(name, _)| name).filter(told) {
        command.env_remove(name);
    }
    command
}

/// Whether everything in the lock file is at hand, so that cargo can be kept off the network.
pub(crate) fn offline(root: &Path) -> bool {
    cargo(root, &["metadata", "--format-version", "1", "--offline", "--locked"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The flags that bind cargo to the lock file, and keep it off the network where that is possible.
pub(crate) fn binding(root: &Path) -> Vec<&'static str> {
    if offline(root) { vec!["--locked", "--offline"] } else { vec!["--locked"] }
}

/// Runs a command with its output shown; an error names the command that failed.
pub(crate) fn must(command: &mut Command) -> Result<()> {
    let text = described(command);
    println!("$ {text}");
    let status = command.status().with_context(|| format!("start `{text}`"))?;
    if !status.success() {
        bail!("`{text}` ended with {status}");
    }
    Ok(())
}

/// Runs a command and gives its standard output; an error carries its standard error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let text = described(command);
    let output = command.output().with_context(|| format!("start `{text}`"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{text}` ended with {}: {}", output.status, complaint.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("output of `{text}` is not text"))
}

/// The folder on PATH that holds this program.
pub(crate) fn on_path(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn described(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program()).to_string_lossy();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(name).chain(arguments).collect::<Vec<_>>().join(" ")
}
