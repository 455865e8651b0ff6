//! Which controllers run: each row of the catalog, and its own type.
//!
//! Must not decide anything.

use operators::database::DatabaseController;
use operators::zookeeper::ZookeeperController;
use runner::Runner;

/// Adds every controller.
#[must_use]
pub fn all(runner: Runner) -> Runner {
    runner.with::<DatabaseController>().with::<ZookeeperController>()
}
