//! The text files of the checkout, read once and handed to every check.
//!
//! Must not judge anything: what is wrong with a file is the business of `tidy` and `edges`.
//! Version control is not asked, so that an unpacked source archive can be checked as well.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// One text file: its path relative to the root, with `/` between the parts, and its content.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    /// Whether this is Rust source.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether this is a Markdown document.
    pub(crate) fn is_markdown(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// The lines with their numbers, counted from one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// Every text file below one root, sorted by path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    pub(crate) files: Vec<TextFile>,
}

impl Tree {
    /// Reads the checkout; build folders and version control are left out.
    pub(crate) fn read(root: &Path) -> Result<Tree> {
        let mut tree = Tree { root: root.to_path_buf(), files: Vec::new() };
        tree.descend(root)?;
        tree.files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(tree)
    }

    /// The file at exactly this path.
    pub(crate) fn file(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files of the tree.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// The names of the folders below `crates`, which are the names of the crates.
    pub(crate) fn crates(&self) -> Vec<String> {
        self.files
            .iter()
            .filter_map(|file| file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"))
            .map(str::to_owned)
            .collect()
    }

    fn descend(&mut self, folder: &Path) -> Result<()> {
        let entries =
            fs::read_dir(folder).with_context(|| format!("read folder {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_dir() && !skipped(&name) {
                self.descend(&entry.path())?;
            } else if kind.is_file() {
                self.add(&entry.path());
            }
        }
        Ok(())
    }

    /// Adds a file if it is text; a file that vanished meanwhile (an editor's) is no error.
    fn add(&mut self, path: &Path) {
        let Ok(text) = fs::read_to_string(path) else { return };
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
        self.files.push(TextFile { path: parts.join("/"), text });
    }
}

/// Folders that hold no source of ours.
fn skipped(name: &str) -> bool {
    name == ".git" || name == "target" || name.starts_with("target-")
}

/// The root of the checkout: the folder above `xtask`.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A tree made of samples, for the tests of the checks.
#[cfg(test)]
pub(crate) fn sample(files: &[(&str, &str)]) -> Tree {
    let files = files
        .iter()
        .map(|(path, text)| TextFile { path: (*path).to_owned(), text: (*text).to_owned() })
        .collect();
    Tree { root: PathBuf::from("/nowhere/at-all"), files }
}
