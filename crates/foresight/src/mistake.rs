//! Mistakes that people make, each in one sentence with a next step.
//!
//! Must not hide what the server said: where its words are needed they are kept.

use std::fmt;

use serde_json::Value;

use crate::cause::{self, Cause};
use crate::schema;

/// A mistake, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What is wrong, in one sentence.
    pub sentence: String,
    /// What to do.
    pub next: String,
}

impl Mistake {
    /// A mistake.
    pub fn new(sentence: impl Into<String>, next: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), next: next.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sentence)?;
        if self.next.is_empty() { Ok(()) } else { write!(f, "\n  -> {}", self.next) }
    }
}

impl std::error::Error for Mistake {}

/// What the API server answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// The API's reason.
    pub reason: String,
    /// The server's sentence.
    pub message: String,
    /// What it lists as causes, if it does.
    pub causes: Vec<Cause>,
}

/// Whom a request was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About<'a> {
    /// `Kind/namespace/name`.
    pub resource: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// What was tried, such as `patch databases.database.example.com`.
    pub verb: &'a str,
    /// The schema of its kind.
    pub schema: &'a Value,
}

/// Whether the server refuses what the manifest says, rather than the person or the request.
pub fn is_about_the_manifest(refusal: &Refusal) -> bool {
    match refusal.code {
        400 | 422 => true,
        409 => refusal.message.contains("conflict with"),
        // Admission answers with 403 as well; then it names itself.
        403 => refusal.message.contains("admission webhook") || refusal.message.contains("denied"),
        _ => false,
    }
}

/// The answer of the server in words.
pub fn of(refusal: &Refusal, about: &About<'_>) -> Mistake {
    let message = refusal.message.as_str();
    match refusal.code {
        _ if message.contains("unknown field") => unknown_field(message, about),
        401 => Mistake::new(
            "The cluster does not accept your credentials.",
            "Log in again, or name another context with KUBECONFIG.",
        ),
        403 if !is_about_the_manifest(refusal) => Mistake::new(
            format!("You may not {} in namespace {}.", about.verb, about.namespace),
            format!(
                "Ask for that permission (`kubectl auth can-i` shows what you have), or use \
                 --offline. The server says: {message}"
            ),
        ),
        404 if message.contains("namespaces") => Mistake::new(
            format!("{}: namespace {} does not exist.", about.resource, about.namespace),
            format!(
                "Correct metadata.namespace or -n, or create it: kubectl create namespace {}",
                about.namespace
            ),
        ),
        404 => Mistake::new(
            format!("The cluster does not serve the kind of {}.", about.resource),
            "Install the definitions: steadfast crds | kubectl apply --server-side -f -",
        ),
        409 => Mistake::new(
            format!("{}: {}", about.resource, conflict(message)),
            "Leave these fields to their manager, or take them over with --force-conflicts.",
        ),
        400 | 403 | 422 => {
            let (words, unchecked) = cause::told(&refusal.causes, message);
            let next = if unchecked {
                "Correct the manifest and plan again; other rules are checked then."
            } else {
                "Correct the manifest and plan again."
            };
            Mistake::new(format!("{}: {words}", about.resource), next)
        }
        code => Mistake::new(
            format!("The API server cannot answer now (HTTP {code}): {message}"),
            "Try again in a moment.",
        ),
    }
}

fn unknown_field(message: &str, about: &About<'_>) -> Mistake {
    let field = message
        .split("unknown field")
        .nth(1)
        .and_then(|rest| rest.split('"').nth(1))
        .unwrap_or_default();
    let next = match schema::nearest(about.schema, field) {
        Some(meant) => format!("Did you mean {meant}?"),
        None => {
            let parent = field.rsplit_once('.').map_or("spec", |(parent, _)| parent);
            let kind = about.resource.split('/').next().unwrap_or_default().to_lowercase();
            format!("`kubectl explain {kind}.{parent}` lists the fields.")
        }
    };
    Mistake::new(format!("{}: there is no field {field}.", about.resource), next)
}

fn conflict(message: &str) -> String {
    let causes = message.split_once(": ").map_or(message, |(_, causes)| causes);
    format!("fields that another manager owns would change ({causes}).")
}

/// No server could be reached; `without` ends the next step where the command can do without one.
pub fn unreachable(address: &str, why: &str, without: &str) -> Mistake {
    Mistake::new(
        format!("No API server answers at {address}: {why}."),
        format!("Check `kubectl cluster-info` and KUBECONFIG{without}."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(code: u16, message: &str) -> String {
        let schema = json!({"properties": {"spec": {"properties": {"storage": {}}}}});
        let about = About {
            resource: "Database/shop/orders",
            namespace: "shop",
            verb: "patch databases.database.example.com",
            schema: &schema,
        };
        of(&Refusal { code, message: message.to_owned(), ..Refusal::default() }, &about).to_string()
    }

    #[test]
    fn each_refusal_is_one_sentence_and_a_next_step() {
        assert_eq!(
            told(
                400,
                "Database in version \"v1\" cannot be handled as a Database: strict decoding \
                error: unknown field \"spec.storag\""
            ),
            "Database/shop/orders: there is no field spec.storag.\n  -> Did you mean spec.storage?"
        );
        assert_eq!(
            told(404, "namespaces \"shop\" not found"),
            "Database/shop/orders: namespace shop does not exist.\n  -> Correct metadata.namespace \
             or -n, or create it: kubectl create namespace shop"
        );
        assert!(
            told(403, "databases is forbidden: User \"eve\" cannot patch")
                .starts_with("You may not patch databases.database.example.com in namespace shop.")
        );
        assert!(
            told(409, "Apply failed with 1 conflict: conflict with \"hpa\": .spec.replicas")
                .contains("(conflict with \"hpa\": .spec.replicas).\n  -> Leave these fields")
        );
        assert!(told(401, "Unauthorized").starts_with("The cluster does not accept"));
        assert!(told(503, "etcd").contains("cannot answer now (HTTP 503): etcd"));
    }

    #[test]
    fn a_rule_of_the_whole_names_its_field_itself() {
        let message = "Database.database.example.com \"orders\" is invalid: <nil>: Invalid value: \
            spec.storage.size: a volume cannot shrink";
        assert!(
            told(422, message)
                .starts_with("Database/shop/orders: spec.storage.size: a volume cannot shrink\n")
        );
    }

    #[test]
    fn the_words_of_a_rule_are_told_once() {
        let message = "Database.database.example.com \"orders\" is invalid: spec.databaseName: \
            Invalid value: \"new\": cannot change; restore the old value";
        assert_eq!(
            told(422, message),
            "Database/shop/orders: spec.databaseName: cannot change; restore the old value\n  -> \
             Correct the manifest and plan again."
        );
    }
}
