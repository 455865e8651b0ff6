//! Names, keys and other texts: what Kubernetes lets them be, and its words when they are not.
//!
//! Each function answers its complaints, none if the text is fine. Source: `k8s.io/apimachinery`
//! `pkg/api/validate/content` and `pkg/util/validation` 0.36.

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const NAME_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
/// The complaint about what is no IP address.
pub(super) const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_name_part(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let ends = |c: Option<u8>| c.is_some_and(|b| b.is_ascii_alphanumeric());
    text.bytes().all(inner) && ends(text.bytes().next()) && ends(text.bytes().last())
}

fn too_long(text: &str, most: usize, unit: &str) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} {unit}"))
}

/// A DNS label: lower case, at most 63.
pub(super) fn label(text: &str) -> Vec<String> {
    let long = too_long(text, 63, "characters");
    let wrong = (!is_label(text)).then(|| {
        if is_subdomain(text) { "must not contain dots".to_owned() } else { LABEL.to_owned() }
    });
    long.into_iter().chain(wrong).collect()
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// A DNS subdomain: labels with dots between them, at most 253.
pub(super) fn subdomain(text: &str) -> Vec<String> {
    let long = too_long(text, 253, "characters");
    let wrong = (!is_subdomain(text)).then(|| SUBDOMAIN.to_owned());
    long.into_iter().chain(wrong).collect()
}

/// The names of roles and their bindings: anything that can stand in a URL path.
pub(super) fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => ["/", "%"]
            .iter()
            .filter(|part| text.contains(**part))
            .map(|part| format!("may not contain '{part}'"))
            .collect(),
    }
}

/// A qualified name: `name` or `example.com/name`.
pub(super) fn qualified(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split('/').collect::<Vec<_>>().as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            return vec![format!(
                "a valid label key {NAME_PART} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    let mut complaints = Vec::new();
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            complaints.push("prefix part must be non-empty".to_owned());
        } else {
            complaints
                .extend(subdomain(prefix).into_iter().map(|text| format!("prefix part {text}")));
        }
    }
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        complaints.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name_part(name) {
        complaints.push(format!("name part {NAME_PART}"));
    }
    complaints
}

/// The value of a label.
pub(super) fn label_value(text: &str) -> Vec<String> {
    let long = too_long(text, 63, "bytes");
    let wrong = (!text.is_empty() && !is_name_part(text)).then(|| LABEL_VALUE.to_owned());
    long.into_iter().chain(wrong).collect()
}

/// A key in a ConfigMap or Secret.
pub(super) fn config_key(text: &str) -> Vec<String> {
    let mut complaints: Vec<String> = too_long(text, 253, "characters").into_iter().collect();
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if text.is_empty() || !text.bytes().all(inner) {
        complaints.push(CONFIG_KEY.to_owned());
    }
    match text {
        "." => complaints.push("must not be '.'".to_owned()),
        ".." => complaints.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => complaints.push("must not start with '..'".to_owned()),
        _ => {}
    }
    complaints
}

/// The name of a port: an IANA service name.
pub(super) fn port_name(text: &str) -> Vec<String> {
    let mut complaints: Vec<String> = too_long(text, 15, "characters").into_iter().collect();
    if !text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        complaints.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    } else if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        complaints.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        complaints.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        complaints.push("must not begin or end with a hyphen".to_owned());
    }
    complaints
}

/// The name of an environment variable.
pub(super) fn variable(text: &str) -> Vec<String> {
    if text.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=') {
        return Vec::new();
    }
    vec!["a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned()]
}

/// A percentage.
pub(super) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    vec![PERCENT.to_owned()]
}

/// A relative path that stays below where it starts.
pub(super) fn inner_path(text: &str) -> Option<&'static str> {
    if text.starts_with('/') { Some("must be a relative path") } else { no_backsteps(text) }
}

/// A path without `..`.
pub(super) fn no_backsteps(text: &str) -> Option<&'static str> {
    text.split('/').any(|part| part == "..").then_some("must not contain '..'")
}
