//! Builds programs from a pinned Go module, once, into the cache.
//!
//! The module's `go.mod` and `go.sum` are compiled into this crate, so that the build needs no checkout and
//! cannot see a half-edited one. Go verifies every download against `go.sum` and may not change it
//! (`-mod=readonly`).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::cache;

/// A Go module that exists to pin programs, and the programs to build from it.
#[derive(Debug, Clone, Copy)]
pub struct ToolModule {
    /// The folder in the cache that holds this module's builds, one subfolder for each pinned state.
    pub name: &'static str,
    /// Version to show in the folder's name; the linker flags carry it into the programs.
    pub version: &'static str,
    /// Text of `go.mod`.
    pub go_mod: &'static str,
    /// Text of `go.sum`.
    pub go_sum: &'static str,
    /// Go files of the module's own, if it has any: name and text.
    pub sources: &'static [(&'static str, &'static str)],
    /// Value of `-ldflags`.
    pub linker_flags: &'static str,
    /// File name of each program and the package it is built from.
    pub programs: &'static [(&'static str, &'static str)],
}

impl ToolModule {
    /// Folder of this exact module state: `<cache>/<name>/<version>-<first 12 hex digits of the digest>`.
    ///
    /// # Errors
    /// No cache folder can be named.
    pub fn folder(&self) -> Result<PathBuf> {
        let mut digest = Sha256::new();
        let sources = self.sources.iter().map(|(_, text)| *text);
        for text in [self.go_mod, self.go_sum, self.linker_flags].into_iter().chain(sources) {
            digest.update(text);
            digest.update([0]);
        }
        let digest: String =
            digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Ok(cache::folder()?.join(self.name).join(format!("{}-{digest}", self.version)))
    }

    /// The folder, if every program is already in it.
    pub fn built(&self) -> Option<PathBuf> {
        let folder = self.folder().ok()?;
        self.programs.iter().all(|(program, _)| folder.join(program).is_file()).then_some(folder)
    }

    /// The folder, after building what is missing. A second process waits for the first one's build.
    /// Takes minutes when the cache is cold; progress goes to standard error.
    ///
    /// # Errors
    /// The `go` command is missing or too old, a module cannot be fetched, or the disk is full.
    pub fn ensure(&self) -> Result<PathBuf> {
        if let Some(folder) = self.built() {
            return Ok(folder);
        }
        let folder = self.folder()?;
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        // The lock lives as long as the open file; a killed build leaves no stale lock behind.
        let lock = File::create(folder.join(".lock")).context("create the build's lock file")?;
        lock.lock().context("wait for another process's build")?;
        self.write_module(&folder)?;
        for (program, package) in self.programs {
            if !folder.join(program).is_file() {
                self.build(&folder, program, package)?;
            }
        }
        Ok(folder)
    }

    fn write_module(&self, folder: &Path) -> Result<()> {
        let files = [("go.mod", self.go_mod), ("go.sum", self.go_sum)];
        for (name, text) in files.iter().chain(self.sources) {
            fs::write(folder.join(name), text).with_context(|| format!("write {name}"))?;
        }
        Ok(())
    }

    /// Builds one program beside its final name and renames it, so that nobody ever runs half a file.
    fn build(&self, folder: &Path, program: &str, package: &str) -> Result<()> {
        eprintln!(
            "testbed: building {program} for {} from {package} (minutes when cold)",
            self.version
        );
        let unfinished = folder.join(format!(".{program}.unfinished"));
        let status = Command::new("go")
            .current_dir(folder)
            .env("CGO_ENABLED", "0")
            // A surrounding workspace or vendor flag must not change what is built.
            .env("GOWORK", "off")
            .env("GOFLAGS", "-mod=readonly -buildvcs=false")
            .args(["build", "-p", "2", "-trimpath", "-ldflags", self.linker_flags, "-o"])
            .arg(&unfinished)
            .arg(package)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("run `go build`: is Go 1.26 or newer on the PATH?")?;
        ensure!(status.success(), "`go build {package}` ended with {status}; its output is above");
        fs::rename(&unfinished, folder.join(program))
            .with_context(|| format!("put {program} in place"))
    }
}
