//! The three programs of a control plane: how each is told to run, and how it is held and ended.

pub(crate) mod arguments;
mod group;
mod program;

pub(crate) use group::Group;
pub(crate) use program::Program;

/// etcd's name in log files and messages.
pub(crate) const ETCD: &str = "etcd";
/// The API server's name in log files and messages.
pub(crate) const API_SERVER: &str = "kube-apiserver";
/// The controllers' name in log files and messages.
pub(crate) const CONTROLLER_MANAGER: &str = "kube-controller-manager";
