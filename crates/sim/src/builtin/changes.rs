//! What has changed in the store since a controller last looked: its informer.
//!
//! Must not hold objects; the store does.

use std::collections::BTreeSet;

use crate::Core;
use crate::store::{Change, Store};

/// A controller's place in the history of changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    seen: u64,
}

impl Changes {
    /// Every change since the last call, oldest first; none when some are forgotten, and everything must
    /// be looked at again. The first call answers with the whole history.
    pub(crate) fn next<'a>(&mut self, store: &'a Store) -> Option<Vec<&'a Change>> {
        let changes = store.since(self.seen).map(Iterator::collect);
        self.seen = store.version();
        changes
    }

    /// The plural names of what has changed; none when that is not known.
    pub(crate) fn plurals<'a>(&mut self, core: &'a Core) -> Option<BTreeSet<&'a str>> {
        let changes = self.next(&core.store)?;
        Some(changes.into_iter().map(|change| change.key.plural.as_str()).collect())
    }
}
