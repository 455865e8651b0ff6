//! `metav1.Status`: how the API server says no (issue 2, "errors with the real server's wording").
//!
//! Only builds answers; which answer a request deserves is decided where the rule lives.

use serde_json::{Map, Value, json};

use crate::kind::Kind;

/// A refused request; becomes a `metav1.Status` on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, as `metav1.StatusReason`.
    pub reason: &'static str,
    /// What a user reads, worded as kube-apiserver words it.
    pub message: String,
    /// `metav1.StatusDetails`, when the real server sends them.
    pub details: Option<Value>,
}

/// One cause inside an `Invalid` or `Conflict` answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    /// `FieldValueRequired`, `FieldValueInvalid`, `FieldManagerConflict`, …
    pub reason: &'static str,
    /// Path of the field, for example `spec.replicas`.
    pub field: String,
    /// Text without the leading path.
    pub message: String,
}

impl Cause {
    /// A cause from its three parts.
    pub fn new(
        reason: &'static str,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Cause {
        Cause { reason, field: field.into(), message: message.into() }
    }
}

/// `plural.group`, or `plural` alone in the core group: a Go `GroupResource`.
fn resource(kind: &Kind) -> String {
    kind.resource()
}

fn named(kind: &Kind, name: &str) -> Value {
    let mut details = Map::new();
    if !name.is_empty() {
        details.insert("name".into(), json!(name));
    }
    if !kind.group.is_empty() {
        details.insert("group".into(), json!(kind.group));
    }
    details.insert("kind".into(), json!(kind.plural));
    Value::Object(details)
}

impl Failure {
    /// A failure from its parts, without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Failure {
        Failure { code, reason, message: message.into(), details: None }
    }

    /// 404 for one named object.
    pub fn not_found(kind: &Kind, name: &str) -> Failure {
        Failure::new(404, "NotFound", format!("{} \"{name}\" not found", resource(kind)))
            .with(named(kind, name))
    }

    /// 404 for a path or a kind that is not served.
    pub fn no_such_resource() -> Failure {
        Failure::new(404, "NotFound", "the server could not find the requested resource")
            .with(json!({}))
    }

    /// 409: the name is taken.
    pub fn already_exists(kind: &Kind, name: &str) -> Failure {
        Failure::new(409, "AlreadyExists", format!("{} \"{name}\" already exists", resource(kind)))
            .with(named(kind, name))
    }

    /// 409 with a message of its own.
    pub fn conflict(message: impl Into<String>) -> Failure {
        Failure::new(409, "Conflict", message)
    }

    /// 409 for one object; `message` is what follows the standard opening.
    pub fn conflict_on(kind: &Kind, name: &str, message: &str) -> Failure {
        Failure::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {} \"{name}\": {message}", resource(kind)),
        )
        .with(named(kind, name))
    }

    /// 409 as optimistic concurrency words it.
    pub fn modified(kind: &Kind, name: &str) -> Failure {
        Failure::conflict_on(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 409 of server-side apply; `causes` name each field and the manager that owns it.
    pub fn apply_conflict(message: String, causes: &[Cause]) -> Failure {
        Failure::new(409, "Conflict", message).with(json!({ "causes": causes_json(causes) }))
    }

    /// 422 with every cause.
    pub fn invalid(kind: &Kind, name: &str, causes: Vec<Cause>) -> Failure {
        let body = joined(&causes);
        let full = if kind.group.is_empty() {
            kind.kind.clone()
        } else {
            format!("{}.{}", kind.kind, kind.group)
        };
        let mut details = named(kind, name);
        details["kind"] = json!(kind.kind);
        details["causes"] = causes_json(&causes);
        Failure::new(422, "Invalid", format!("{full} \"{name}\" is invalid: {body}")).with(details)
    }

    /// 422 for the options of a request, for example `CreateOptions`.
    pub fn invalid_options(options: &str, causes: &[Cause]) -> Failure {
        Failure::new(
            422,
            "Invalid",
            format!("{options}.meta.k8s.io \"\" is invalid: {}", joined(causes)),
        )
        .with(json!({ "group": "meta.k8s.io", "kind": options, "causes": causes_json(causes) }))
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(400, "BadRequest", message)
    }

    /// 403 for one object; `message` is what follows the standard opening.
    pub fn forbidden(kind: &Kind, name: &str, message: &str) -> Failure {
        let text = if name.is_empty() {
            format!("{} is forbidden: {message}", resource(kind))
        } else {
            format!("{} \"{name}\" is forbidden: {message}", resource(kind))
        };
        Failure::new(403, "Forbidden", text).with(named(kind, name))
    }

    /// 410 with reason `Expired`: a version or continue token that is no longer kept.
    pub fn gone(message: impl Into<String>) -> Failure {
        Failure::new(410, "Expired", message)
    }

    /// 429; `retry_after` in seconds goes into the details (and the header, see `service`).
    pub fn too_many(message: impl Into<String>, retry_after: Option<u32>) -> Failure {
        let failure = Failure::new(429, "TooManyRequests", message);
        match retry_after {
            Some(seconds) => failure.with(json!({ "retryAfterSeconds": seconds })),
            None => failure,
        }
    }

    /// 500.
    pub fn internal(message: impl Into<String>) -> Failure {
        Failure::new(500, "InternalError", format!("Internal error occurred: {}", message.into()))
    }

    /// 504.
    pub fn timeout(message: impl Into<String>) -> Failure {
        Failure::new(504, "Timeout", message)
    }

    /// 405.
    pub fn method_not_allowed() -> Failure {
        Failure::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with(json!({}))
    }

    /// 415.
    pub fn unsupported_media(accepted: &str) -> Failure {
        Failure::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {accepted}"
            ),
        )
    }

    /// 501: a part of the API that this simulator does not have.
    pub fn not_implemented(what: &str) -> Failure {
        Failure::new(501, "NotImplemented", format!("{what} is not simulated"))
    }

    /// The same failure with `details`.
    pub fn with(mut self, details: Value) -> Failure {
        self.details = Some(details);
        self
    }

    /// The wire form.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.code, self.reason, self.message)
    }
}

impl std::error::Error for Failure {}

/// All causes in one sentence; equal ones are said once, though the details list them all.
fn joined(causes: &[Cause]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for cause in causes {
        let text = format!("{}: {}", cause.field, cause.message);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

fn causes_json(causes: &[Cause]) -> Value {
    causes
        .iter()
        .map(|cause| json!({ "reason": cause.reason, "message": cause.message, "field": cause.field }))
        .collect()
}
