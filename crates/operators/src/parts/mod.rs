//! Pieces that two or more controllers use, and only those.
//!
//! Must not know a custom resource: a controller's context tells its own kind and names through the
//! traits [`scene::Scene`] and [`members::Members`].
//!
//! | To find | Look in |
//! |---|---|
//! | what is known of an object | [`scene`] |
//! | bringing children about | [`tending`] |
//! | pods and claims of a set by ordinal | [`members`] |
//! | pods and claims behind changed labels | [`hidden`] |
//! | why a pod does not start | [`causes`], [`stall`] |
//! | reasons that every controller gives | [`reason`] |
//! | the stored status: read, compared, its conditions kept | [`memory`], [`stored`] |
//! | edits of others that were taken back | [`reverts`] |
//! | refused fields of a spec | [`refusal`] |
//! | bounds and free-form parts of a schema | [`schema`] |
//! | the outcome of a climb, and the plan around it | [`course`] |

pub(crate) mod causes;
pub(crate) mod course;
pub(crate) mod hidden;
pub(crate) mod kinds;
pub(crate) mod members;
pub(crate) mod memory;
pub(crate) mod reason;
pub(crate) mod refusal;
pub(crate) mod reverts;
pub(crate) mod scene;
pub(crate) mod schema;
pub(crate) mod stall;
pub(crate) mod stored;
pub(crate) mod tending;
