//! The unprivileged user that containers run as when this process is root. Only looks it up.

use nix::unistd::{Uid, User};

/// Users tried in turn: the database's own first, then the one every system has.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunUser {
    /// Name, for `USER` and `LOGNAME`.
    pub(crate) name: String,
    /// Numeric user.
    pub(crate) uid: u32,
    /// Numeric group.
    pub(crate) gid: u32,
}

impl RunUser {
    /// The user to change to, or `None` when this process is not root and runs things as itself.
    ///
    /// `Err` when this process is root and has nobody to change to: PostgreSQL refuses to run as root.
    pub(crate) fn choose() -> Result<Option<Self>, String> {
        if !Uid::effective().is_root() {
            return Ok(None);
        }
        CANDIDATES
            .iter()
            .find_map(|name| User::from_name(name).ok().flatten())
            .map(|user| {
                Some(Self { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() })
            })
            .ok_or_else(|| {
                format!(
                    "running as root needs an unprivileged user, one of: {}",
                    CANDIDATES.join(", ")
                )
            })
    }
}
