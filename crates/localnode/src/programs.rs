//! The server programs of this machine. Only looks; installs and starts nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One installation of PostgreSQL's server programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresPrograms {
    /// Folder of `postgres`, `initdb`, `pg_ctl`, `psql`.
    pub bin_dir: PathBuf,
    /// Major version of `postgres` in it.
    pub major: u32,
}

/// Everything the node can run in place of a container image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Programs {
    /// PostgreSQL installations by major version; none means that no postgres image can be "pulled".
    pub postgres: BTreeMap<u32, PostgresPrograms>,
}

impl Programs {
    /// Looks for programs on this machine.
    pub fn find() -> Self {
        let mut postgres = BTreeMap::new();
        for found in candidate_folders().into_iter().filter_map(|folder| examine(&folder)) {
            postgres.entry(found.major).or_insert(found);
        }
        Self { postgres }
    }

    /// The installation for a wanted major version: that one, or else the newest.
    pub fn postgres_for(&self, major: Option<u32>) -> Option<&PostgresPrograms> {
        major
            .and_then(|major| self.postgres.get(&major))
            .or_else(|| self.postgres.values().next_back())
    }
}

/// The newest PostgreSQL installation of this machine: in PATH, `/usr/lib/postgresql/<v>/bin`,
/// `/usr/pgsql-<v>/bin`, or Homebrew's folders.
pub fn find() -> Option<PostgresPrograms> {
    Programs::find().postgres_for(None).cloned()
}

fn candidate_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path)
        .filter_map(|folder| folder.join("postgres").canonicalize().ok())
        .filter_map(|program| program.parent().map(Path::to_path_buf))
        .collect();
    folders.extend(children_named("/usr/lib/postgresql", ""));
    folders.extend(children_named("/usr", "pgsql-"));
    for brew in ["/opt/homebrew/opt", "/usr/local/opt", "/home/linuxbrew/.linuxbrew/opt"] {
        folders.extend(children_named(brew, "postgresql"));
    }
    folders
}

/// The `bin` folders of a folder's children whose name begins with `prefix`.
fn children_named(folder: &str, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path().join("bin"))
        .collect()
}

/// A folder counts when the three programs the entry point needs are in it.
fn examine(folder: &Path) -> Option<PostgresPrograms> {
    let bin_dir = folder.canonicalize().ok()?;
    if !["postgres", "initdb", "psql"].iter().all(|program| bin_dir.join(program).is_file()) {
        return None;
    }
    let output =
        std::process::Command::new(bin_dir.join("postgres")).arg("--version").output().ok()?;
    let major = major_in(&String::from_utf8_lossy(&output.stdout))?;
    Some(PostgresPrograms { bin_dir, major })
}

/// Reads `15` out of `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn major_in(version_line: &str) -> Option<u32> {
    let number = version_line
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_program_prints() {
        for (line, major) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", Some(15)),
            ("postgres (PostgreSQL) 18beta1", Some(18)),
            ("postgres", None),
        ] {
            assert_eq!(major_in(line), major, "{line}");
        }
    }

    #[test]
    fn the_asked_version_wins_over_the_newest() {
        let at =
            |major| (major, PostgresPrograms { bin_dir: format!("/pg/{major}").into(), major });
        let programs = Programs { postgres: BTreeMap::from([at(14), at(16)]) };
        let chosen = |asked| programs.postgres_for(asked).map(|p| p.major);
        assert_eq!(chosen(Some(14)), Some(14));
        assert_eq!(chosen(Some(17)), Some(16));
        assert_eq!(chosen(None), Some(16));
        assert_eq!(Programs::default().postgres_for(None), None);
    }
}
