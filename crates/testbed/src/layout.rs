//! Names of the files in a control plane's folder.

use std::path::{Path, PathBuf};

/// A control plane's folder, and where each thing lies in it.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    folder: PathBuf,
}

impl Layout {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn log(&self, program: &str) -> PathBuf {
        self.folder.join(format!("{program}.log"))
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.jsonl")
    }

    pub(crate) fn admin_kubeconfig(&self) -> PathBuf {
        self.folder.join("admin.kubeconfig")
    }

    pub(crate) fn certificate(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.crt"))
    }

    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.key"))
    }
}
