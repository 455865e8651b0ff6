//! Image references, read as far as a refusal may rest on them (field case C-11).
//!
//! The version of a server comes from the server and its data, never from a name. A name only gives
//! a *hint*, used to refuse an obvious change of the major version before a pod is replaced.

/// Why an image reference is not one; the sentence follows "spec.image: ".
pub fn refusal(image: &str) -> Option<String> {
    if image.is_empty() {
        return Some("is empty; name an image, such as postgres:17".to_owned());
    }
    if image.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some(format!("{image:?} holds a blank or control character; remove it"));
    }
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|d| !is_digest(d)) {
        return Some(format!(
            "{image:?} has a malformed digest; write name@sha256:<64 hex digits>"
        ));
    }
    let (repository, tag) = split_tag(name);
    let tag_is_fine = tag.is_none_or(|t| {
        (1..=128).contains(&t.len())
            && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    });
    let path_is_fine = !repository.is_empty()
        && repository.split('/').all(|part| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-:[]".contains(&b))
        });
    if tag_is_fine && path_is_fine {
        return None;
    }
    Some(format!("{image:?} is not an image reference; write [registry/]name[:tag][@digest]"))
}

/// The major version that the tag of an image called `postgres` or `postgresql` begins with, when
/// it begins with one.
pub fn major_hint(image: &str) -> Option<u32> {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let (repository, tag) = split_tag(name);
    let last = repository.rsplit('/').next()?;
    if !matches!(last, "postgres" | "postgresql") {
        return None;
    }
    let tag = tag?;
    let end = tag.find(|c: char| !c.is_ascii_digit()).unwrap_or(tag.len());
    let separated = tag[end..].is_empty() || tag[end..].starts_with(['.', '-']);
    let major = tag[..end].parse().ok()?;
    // Longer numbers are dates or builds.
    (separated && (8..=999).contains(&major)).then_some(major)
}

/// Splits a tag off. A colon before the last slash belongs to a registry's port.
fn split_tag(name: &str) -> (&str, Option<&str>) {
    let after_path = name.rfind('/').map_or(0, |i| i + 1);
    match name[after_path..].rfind(':') {
        Some(colon) => (&name[..after_path + colon], Some(&name[after_path + colon + 1..])),
        None => (name, None),
    }
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty() && hex.len() >= 32 && hex.bytes().all(|b| b.is_ascii_hexdigit())
    })
}
