//! A node for a machine without containers: a small kubelet and scheduler that runs the pods of a cluster
//! as real processes of this machine, and speaks to the cluster only through a [`kube::Client`]. It works
//! against the simulated API server (with its own pods switched off) and against a real one that has no
//! node. `README.md` of this crate lists what differs from a kubelet.
//!
//! It must not know what an operator is or does: pods are all it sees.

mod address;
mod assembly;
mod backoff;
mod context;
mod downward;
mod environment;
mod events;
mod expansion;
mod image;
mod keeper;
mod log_file;
mod machine;
mod next;
mod node;
mod probe;
mod probe_run;
mod process;
pub mod programs;
mod provisioner;
mod quality;
mod quantity;
mod record;
mod registration;
mod scheduler;
mod sources;
mod status;
mod stop;
mod translate;
mod user;
mod volume;
mod watching;
mod worker;

pub use address::AddressBlock;
pub use node::{LocalNode, NodeError, Options};
pub use programs::{PostgresPrograms, Programs};
pub use provisioner::PROVISIONER;
