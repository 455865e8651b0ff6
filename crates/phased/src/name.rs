//! Checked names, labels and label values: errors name the limit and the value.
//!
//! The rules are those of Kubernetes' API machinery (RFC 1123 and RFC 1035 labels, qualified
//! names, label values). Must not shorten or mend a name: a cut name may collide with another.

use crate::object::KindRef;

/// Longest DNS label, label name and label value, in bytes.
pub const LABEL_LIMIT: usize = 63;
/// Longest DNS subdomain: the name of most objects, in bytes.
pub const SUBDOMAIN_LIMIT: usize = 253;
/// Longest name of a StatefulSet or DaemonSet whose pods can be created, in bytes: the pods' label
/// `controller-revision-hash` is the name, a dash and a hash of up to ten characters
/// (reference/database.md section 1).
pub const REVISIONED_LIMIT: usize = 52;

/// Why a text cannot be used as a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is longer than the limit.
    #[error("{what} {value:?} has {} characters, at most {limit} are allowed", value.len())]
    TooLong {
        /// What it was to be: `DNS label`, `label value`.
        what: &'static str,
        /// The text.
        value: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// It is empty, where that is not allowed.
    #[error("{what} must not be empty")]
    Empty {
        /// What it was to be.
        what: &'static str,
    },
    /// It holds a character that is not allowed there.
    #[error("{what} {value:?} is not allowed: use {rule}")]
    Malformed {
        /// What it was to be.
        what: &'static str,
        /// The text.
        value: String,
        /// What is allowed, in words.
        rule: &'static str,
    },
}

const LABEL_RULE: &str = "lower-case letters, digits and '-', with a letter or digit at both ends";
const LABEL_1035_RULE: &str =
    "lower-case letters, digits and '-', with a letter first and a letter or digit last";
const SUBDOMAIN_RULE: &str =
    "lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part";
const VALUE_RULE: &str = "letters, digits, '-', '_' and '.', with a letter or digit at both ends";
const PATH_RULE: &str = "anything but '.', '..', '/' and '%'";

/// A DNS label (RFC 1123): at most 63 of `a-z0-9-`, a letter or digit at both ends.
///
/// # Errors
/// When `value` is not one.
pub fn dns_label(value: &str) -> Result<(), NameError> {
    checked("DNS label", value, LABEL_LIMIT, LABEL_RULE, is_dns_label)
}

/// A DNS label that starts with a letter (RFC 1035): the name of a Service.
///
/// # Errors
/// When `value` is not one.
pub fn dns_1035_label(value: &str) -> Result<(), NameError> {
    checked("Service name", value, LABEL_LIMIT, LABEL_1035_RULE, |text| {
        is_dns_label(text) && text.as_bytes()[0].is_ascii_lowercase()
    })
}

/// A DNS subdomain: labels joined by dots, at most 253.
///
/// # Errors
/// When `value` is not one.
pub fn dns_subdomain(value: &str) -> Result<(), NameError> {
    checked("name", value, SUBDOMAIN_LIMIT, SUBDOMAIN_RULE, is_subdomain)
}

/// A label's value: empty, or at most 63 of `A-Za-z0-9-_.`, a letter or digit at both ends.
///
/// # Errors
/// When `value` is not one.
pub fn label_value(value: &str) -> Result<(), NameError> {
    if value.is_empty() {
        return Ok(());
    }
    checked("label value", value, LABEL_LIMIT, VALUE_RULE, is_qualified)
}

/// A label's or annotation's key: a name of at most 63, with an optional DNS subdomain before `/`.
///
/// # Errors
/// When `value` is not one.
pub fn label_key(value: &str) -> Result<(), NameError> {
    let (prefix, name) = match value.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, value),
    };
    if let Some(prefix) = prefix {
        checked("prefix of a label key", prefix, SUBDOMAIN_LIMIT, SUBDOMAIN_RULE, is_subdomain)?;
    }
    checked("label key", name, LABEL_LIMIT, VALUE_RULE, is_qualified)
}

/// The name of an object of `kind`, by the rule that the API has for that kind, and for workloads
/// by the limit beyond which their pods cannot be created.
///
/// # Errors
/// When `value` is not one.
pub fn object_name(kind: KindRef, value: &str) -> Result<(), NameError> {
    match (kind.group, kind.kind) {
        ("", "Service") => dns_1035_label(value),
        ("", "Namespace") => dns_label(value),
        ("apps", "StatefulSet" | "DaemonSet") => {
            checked("workload name", value, REVISIONED_LIMIT, LABEL_RULE, is_dns_label)
        }
        ("apps", "Deployment") => dns_label(value),
        ("rbac.authorization.k8s.io", _) => {
            checked("name", value, SUBDOMAIN_LIMIT, PATH_RULE, |text| {
                text != "." && text != ".." && !text.contains(['/', '%'])
            })
        }
        _ => dns_subdomain(value),
    }
}

fn checked(
    what: &'static str,
    value: &str,
    limit: usize,
    rule: &'static str,
    allowed: impl Fn(&str) -> bool,
) -> Result<(), NameError> {
    if value.is_empty() {
        return Err(NameError::Empty { what });
    }
    if value.len() > limit {
        return Err(NameError::TooLong { what, value: value.to_owned(), limit });
    }
    if allowed(value) {
        Ok(())
    } else {
        Err(NameError::Malformed { what, value: value.to_owned(), rule })
    }
}

/// Whether `text` is not empty, holds only bytes that `inner` allows, and `outer` ones at its ends.
fn is_made_of(text: &str, inner: fn(u8) -> bool, outer: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            outer(*first) && outer(*last) && bytes.iter().all(|b| inner(*b) || outer(*b))
        }
        _ => false,
    }
}

fn is_dns_label(text: &str) -> bool {
    is_made_of(text, |b| b == b'-', |b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

fn is_qualified(text: &str) -> bool {
    is_made_of(text, |b| matches!(b, b'-' | b'_' | b'.'), |b| b.is_ascii_alphanumeric())
}
