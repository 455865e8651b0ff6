//! The API server's audit log: what was really asked of it, by whom. Tests count writes with it.
//!
//! Reads and writes are logged with their metadata; writes also with their body, except those that may carry
//! a secret.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// The policy given to kube-apiserver. Only finished requests are logged, so a watch appears when it ends.
pub(crate) const POLICY: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: ["RequestReceived", "ResponseStarted"]
omitManagedFields: true
rules:
- level: Metadata
  resources:
  - group: ""
    resources: ["secrets", "serviceaccounts/token"]
  - group: authentication.k8s.io
    resources: ["tokenreviews"]
- level: Request
  verbs: ["create", "update", "patch", "delete", "deletecollection"]
- level: Metadata
"#;

/// One finished request.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// Who asked; the impersonated user if there was one.
    pub user: String,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// Path and query of the request.
    pub request_uri: String,
    /// API group, empty for the core group and for requests that name no resource.
    pub group: String,
    /// Plural name of the resource; empty for requests such as `/healthz`.
    pub resource: String,
    /// Subresource, such as `status`; empty if none.
    pub subresource: String,
    /// Namespace, empty if none.
    pub namespace: String,
    /// Object name, empty in collection requests.
    pub name: String,
    /// HTTP status of the answer.
    pub code: u16,
    /// When the request arrived.
    pub received: Option<Timestamp>,
    /// Body of a write, where the policy allows it to be logged.
    pub request_object: Option<Value>,
}

impl AuditEntry {
    /// Whether the request asks for a change, whatever the answer was. Dry runs ask for none.
    pub fn is_write(&self) -> bool {
        let changing = ["create", "update", "patch", "delete", "deletecollection"]
            .contains(&self.verb.as_str());
        changing && !self.resource.is_empty() && !self.request_uri.contains("dryRun=")
    }

    fn parse(line: &str) -> Result<Self> {
        let event: Value = serde_json::from_str(line).context("parse an audit log line")?;
        let text = |pointer: &str| {
            event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let user = Some(text("/impersonatedUser/username")).filter(|user| !user.is_empty());
        Ok(Self {
            verb: text("/verb"),
            user: user.unwrap_or_else(|| text("/user/username")),
            user_agent: text("/userAgent"),
            request_uri: text("/requestURI"),
            group: text("/objectRef/apiGroup"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: event
                .pointer("/responseStatus/code")
                .and_then(Value::as_u64)
                .and_then(|code| u16::try_from(code).ok())
                .unwrap_or_default(),
            received: text("/requestReceivedTimestamp").parse().ok(),
            request_object: event.get("requestObject").cloned(),
        })
    }
}

/// Every complete line of the log, oldest first. A missing file is an empty log: nothing was asked yet.
pub(crate) fn read(path: &Path) -> Result<Vec<AuditEntry>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context("read the audit log"),
    };
    // The server may be in the middle of its last line.
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(AuditEntry::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_in_the_making_is_left_for_later() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("audit.jsonl");
        assert_eq!(read(&path).expect("a missing log is empty"), Vec::new());
        fs::write(
            &path,
            "{\"verb\":\"create\",\"objectRef\":{\"resource\":\"pods\"}}\n{\"verb\":\"del",
        )
        .expect("write");
        let entries = read(&path).expect("read");
        assert_eq!(entries.len(), 1);
        assert!(entries[0].is_write());
    }

    #[test]
    fn the_impersonated_user_counts_and_a_dry_run_is_no_write() {
        let line = r#"{"verb":"patch","requestURI":"/api/v1/namespaces/a/pods/b?dryRun=All","user":{"username":"admin"},
            "impersonatedUser":{"username":"ann"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200},
            "requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z"}"#;
        let entry = AuditEntry::parse(line).expect("parse");
        assert_eq!((entry.user.as_str(), entry.code), ("ann", 200));
        assert!(!entry.is_write());
        assert!(entry.received.is_some());
    }
}
