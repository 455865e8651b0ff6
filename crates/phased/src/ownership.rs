//! Who holds a field, read from `metadata.managedFields`.

use crate::compare::Path;
use crate::object::Live;

/// The manager, other than `us`, that holds the field at `path`.
pub fn holder(_live: &Live, _path: &Path, _us: &str) -> Option<String> {
    None
}
