//! The demo's own folder, which holds the kubeconfig, and goes however the demo ends.
//!
//! Must not hold anything of the pods; the node has a folder and a keeper of its own.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Waits for the end of its input, which only the demo's process holds open, and removes the folder:
/// a process that was killed cannot do so itself.
const KEEPER: &str =
    "trap '' INT TERM HUP; while read -r line; do :; done; rm -rf -- \"$1\" 2>/dev/null";

/// A folder that does not outlive the process.
pub(super) struct Folder {
    folder: TempDir,
    keeper: Child,
}

impl Folder {
    /// Makes it, readable by this user only.
    ///
    /// # Errors
    /// When the folder cannot be made, or there is no `/bin/sh`.
    pub(super) fn make() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("steadfast-demo-").tempdir()?;
        let keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER, "steadfast-demo-keeper"])
            .arg(folder.path())
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { folder, keeper })
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // It removes the folder and ends; waiting leaves no zombie and no race with it.
        let _ = self.keeper.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_its_owner() {
        let folder = Folder::make().unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join("kubeconfig"), "text").unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
