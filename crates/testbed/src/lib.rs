//! A real Kubernetes control plane for tests: etcd, kube-apiserver and kube-controller-manager as child
//! processes on loopback ports (design.md section 5); and, where the machine allows it, real nodes for it.
//!
//! Only tests and `xtask` may use this crate; it knows nothing of the operators and must depend on no other
//! crate of the workspace, so that what judges the operators shares no code with them. `README.md` beside
//! `src/` says how the programs are built and what that costs.

pub mod audit;
pub mod binaries;
pub mod cache;
pub mod detached;
pub mod images;
pub mod node;
pub mod stand_in;

mod access;
mod certificates;
mod contents;
mod control_plane;
mod launch;
mod layout;
mod options;
mod ports;
mod programs;
mod readiness;
mod skip;
mod tool_module;

pub use access::Identity;
pub use audit::AuditEntry;
pub use binaries::Binaries;
pub use control_plane::ControlPlane;
pub use node::Cluster;
pub use options::Options;
pub use skip::{require_or_skip, stand_aside};
pub use tool_module::ToolModule;

/// The examples of `README.md`, compiled so that they stay true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
