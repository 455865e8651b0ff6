//! Writes the files of a volume so that a reader sees either the old set or the new one, as a kubelet
//! does: files lie in a dated folder behind the link `..data`, which is swapped by one rename.

use crate::user::RunUser;
use crate::volume::payload::FileContent;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Name of the link that is swapped.
const CURRENT: &str = "..data";

/// Makes `folder` hold exactly `files`; says whether anything had to change.
pub(crate) fn write(
    folder: &Path,
    files: &BTreeMap<String, FileContent>,
    owner: Option<&RunUser>,
) -> io::Result<bool> {
    create_folder(folder, 0o755, owner)?;
    if holds(&folder.join(CURRENT), files) {
        return Ok(false);
    }
    let previous = fs::read_link(folder.join(CURRENT)).ok();
    let version = previous
        .as_ref()
        .and_then(|name| name.to_str()?.strip_prefix("..v")?.parse::<u64>().ok())
        .map_or(1, |number| number + 1);
    let name = format!("..v{version}");
    // What an interrupted write left; usually there is nothing.
    let _ = fs::remove_dir_all(folder.join(&name));
    create_folder(&folder.join(&name), 0o755, owner)?;
    for (path, content) in files {
        write_file(&folder.join(&name), path, content, owner)?;
    }
    swap_link(folder, &name)?;
    arrange_names(folder, files)?;
    if let Some(previous) = previous {
        fs::remove_dir_all(folder.join(previous))?;
    }
    Ok(true)
}

fn swap_link(folder: &Path, version: &str) -> io::Result<()> {
    let fresh = folder.join("..data_tmp");
    // What an interrupted write left; usually there is nothing.
    let _ = fs::remove_file(&fresh);
    symlink(version, &fresh)?;
    fs::rename(&fresh, folder.join(CURRENT))
}

/// The names a reader sees are links into `..data`, one for each first path component.
fn arrange_names(folder: &Path, files: &BTreeMap<String, FileContent>) -> io::Result<()> {
    let wanted: BTreeSet<&str> = files.keys().filter_map(|path| path.split('/').next()).collect();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with("..") && !wanted.contains(name.as_ref()) {
            fs::remove_file(entry.path())?;
        }
    }
    for name in wanted {
        if fs::symlink_metadata(folder.join(name)).is_err() {
            symlink(Path::new(CURRENT).join(name), folder.join(name))?;
        }
    }
    Ok(())
}

fn write_file(
    root: &Path,
    path: &str,
    content: &FileContent,
    owner: Option<&RunUser>,
) -> io::Result<()> {
    let target = root.join(path);
    if let Some(parent) = target.parent().filter(|parent| *parent != root) {
        create_folder(parent, 0o755, owner)?;
    }
    write_private(&target, &content.bytes, owner)?;
    fs::set_permissions(&target, fs::Permissions::from_mode(content.mode))
}

/// Writes a file that nobody but its owner can read at any moment.
pub(crate) fn write_private(
    target: &Path,
    bytes: &[u8],
    owner: Option<&RunUser>,
) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
    file.write_all(bytes)?;
    give(target, owner)
}

/// Makes a folder and those above it, owned by the user that containers run as.
pub(crate) fn create_folder(folder: &Path, mode: u32, owner: Option<&RunUser>) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        create_folder(parent, 0o755, owner)?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
    give(folder, owner)
}

fn give(path: &Path, owner: Option<&RunUser>) -> io::Result<()> {
    match owner {
        Some(user) => std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}

fn holds(current: &Path, files: &BTreeMap<String, FileContent>) -> bool {
    current.is_dir()
        && count_files(current) == Some(files.len())
        && files.iter().all(|(path, content)| {
            let target = current.join(path);
            let mode = fs::metadata(&target).map(|m| m.permissions().mode() & 0o777).ok();
            mode == Some(content.mode)
                && fs::read(&target).is_ok_and(|bytes| bytes == content.bytes)
        })
}

fn count_files(folder: &Path) -> Option<usize> {
    let mut count = 0;
    for entry in fs::read_dir(folder).ok()? {
        let entry = entry.ok()?;
        count += if entry.file_type().ok()?.is_dir() { count_files(&entry.path())? } else { 1 };
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> BTreeMap<String, FileContent> {
        let content = |text: &str| FileContent {
            bytes: text.as_bytes().to_vec(),
            mode: 0o640,
            translated: false,
        };
        entries.iter().map(|(path, text)| ((*path).to_owned(), content(text))).collect()
    }

    #[test]
    fn a_new_set_replaces_the_old_one_whole() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let folder = place.path().join("v");
        let read = |path: &str| fs::read_to_string(folder.join(path));
        assert!(write(&folder, &files(&[("a", "1"), ("d/b", "2")]), None).expect("written"));
        assert!(!write(&folder, &files(&[("a", "1"), ("d/b", "2")]), None).expect("unchanged"));
        let held_open = folder.join("..data").canonicalize().expect("a link");
        assert!(write(&folder, &files(&[("a", "3")]), None).expect("written"));
        assert_eq!(read("a").expect("there"), "3");
        assert!(read("d/b").is_err());
        assert!(!held_open.exists(), "the old set is removed");
        let visible = fs::read_dir(&folder).expect("listed").count();
        assert_eq!(visible, 3, "a, ..data and its folder");
    }
}
