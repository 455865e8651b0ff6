//! Who holds a network's number, and how what the last holder left is removed.
//!
//! A number is held by a lock on a file, which also says where the holder's folder is. The lock's open file is
//! inherited by every node's first process and by the guard: it is free when the last of them is gone.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// Removes what a number names: bridge, control groups, folder. Also run by the guard.
pub(crate) const CLEAN: &str = include_str!("clean.sh");
/// How many numbers there are.
pub(crate) const NUMBERS: u8 = 100;

/// Where the locks lie: one place for all users of the machine, whatever their cache folder.
const LOCKS: &str = "/run/steadfast-testbed";
/// How long the last process of a network may take to end.
const PATIENCE: Duration = Duration::from_secs(20);

fn lock_path(number: u8) -> PathBuf {
    Path::new(LOCKS).join(format!("{number}.lock"))
}

/// Takes a number's lock; none if somebody has it.
pub(crate) fn lock(number: u8) -> Result<Option<File>> {
    let path = lock_path(number);
    // Not emptied: it tells where its last holder's folder was.
    let file = File::options().create(true).truncate(false).read(true).write(true).open(&path);
    let file = file.with_context(|| format!("open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).context("lock a network"),
    }
}

/// Who holds a number, or did last, as its lock file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) number: u8,
    pub(crate) folder: PathBuf,
    /// Tells one holder from the next.
    pub(crate) token: String,
}

impl Holder {
    pub(crate) fn read(number: u8) -> Option<Self> {
        serde_json::from_slice(&fs::read(lock_path(number)).ok()?).ok()
    }

    pub(crate) fn write(&self) -> Result<()> {
        let text = serde_json::to_vec(self).context("write a network's holder")?;
        fs::write(lock_path(self.number), text).context("write a network's holder")
    }

    /// Waits until the last of its processes is gone, and removes what they left, unless the next holder has.
    pub(crate) fn clean(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while Self::read(self.number).as_ref() == Some(self) {
            if let Some(_lock) = lock(self.number)? {
                return self.remove_traces();
            }
            ensure!(Instant::now() < deadline, "network {} is still in use", self.number);
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Removes bridge, control groups and folder. Only for who has the lock.
    pub(crate) fn remove_traces(&self) -> Result<()> {
        let mut script = Command::new("/bin/sh");
        script.args(["-c", CLEAN, "clean", &self.number.to_string()]).arg(&self.folder);
        let status = script.stdin(Stdio::null()).status().context("run the cleaning script")?;
        ensure!(status.success(), "cleaning up network {} ended with {status}", self.number);
        Ok(())
    }

    fn has_traces(&self) -> bool {
        let bridge = Path::new("/sys/class/net").join(format!("steadfast-{}", self.number));
        self.folder.exists() || bridge.exists()
    }
}

/// Cleans up every number that was used and is free.
pub(crate) fn sweep() -> Result<()> {
    fs::create_dir_all(LOCKS).with_context(|| format!("create {LOCKS}"))?;
    for holder in (0..NUMBERS).filter_map(Holder::read).filter(Holder::has_traces) {
        let Some(_lock) = lock(holder.number)? else { continue };
        // Between the two looks somebody may have come and gone.
        if Holder::read(holder.number).as_ref() == Some(&holder) {
            holder.remove_traces()?;
        }
    }
    Ok(())
}
