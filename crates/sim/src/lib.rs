//! A simulated Kubernetes API server with built-in controllers and models of applications.
//!
//! Runs in process, deterministically, under tokio's clock. Must not depend on `phased`,
//! `operators` or `runner`: a judge shares no code with the judged.

pub mod admit;
pub mod apply;
pub mod builtin;
pub mod checker;
pub mod clock;
pub mod cluster;
mod discovery;
mod duplicates;
pub mod exec;
pub mod external;
pub mod faults;
pub mod kind;
pub mod kubeconfig;
mod openapi;
pub mod patch;
mod protobuf;
pub mod quantity;
pub mod reply;
mod request;
pub mod schema;
pub mod seed;
pub mod selector;
pub mod server;
pub mod service;
pub mod status;
pub mod store;
pub mod stream;
mod table;
mod tunnel;
mod upgrade;
pub mod verbs;
mod watch;
pub mod world;

pub use cluster::{
    Actor, Admission, Cluster, Core, DeleteOptions, FieldValidation, Operation, Options, Patch,
    Propagation, Review, Sub,
};
pub use kind::{Kind, Kinds};
pub use status::{Cause, Failure};
pub use store::{Key, Store};
