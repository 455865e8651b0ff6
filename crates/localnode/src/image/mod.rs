//! Which images the node can stand in for, and what a kubelet says about the others.
//! Nothing is ever pulled.

pub(crate) mod entry_script;
pub(crate) mod postgres;
pub(crate) mod settings;
pub(crate) mod shims;

/// An image reference that the node can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// Major version that the tag names, if it names one.
    pub(crate) major: Option<u32>,
    /// A digest stands in for an exact image, which this machine cannot have.
    pub(crate) by_digest: bool,
}

/// Why an image cannot be had, in a kubelet's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PullError {
    /// The text is no image reference at all (`InvalidImageName`).
    Invalid(String),
    /// The registry would say that there is no such image (`ErrImagePull`).
    NotFound(String),
    /// An image of a kind we know, but the machine lacks the programs (`ErrImagePull`).
    NoPrograms(String),
}

impl PullError {
    /// The message a kubelet would report.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Invalid(message) | Self::NotFound(message) | Self::NoPrograms(message) => message,
        }
    }
}

/// Major versions whose tags exist for the official image.
const MAJORS: std::ops::RangeInclusive<u32> = 9..=18;

/// Decides whether an image can be run, from its name alone.
pub(crate) fn recognise(reference: &str) -> Result<Image, PullError> {
    let parts = split(reference).ok_or_else(|| {
        PullError::Invalid(format!(
            "Failed to apply default image tag \"{reference}\": couldn't parse image name \
             \"{reference}\": invalid reference format"
        ))
    })?;
    let not_found = || PullError::NotFound(not_found_message(&parts));
    let name = parts.repository.rsplit('/').next().unwrap_or_default();
    if !name.contains("postgres") {
        return Err(not_found());
    }
    let by_digest = parts.digest.is_some();
    match parts.tag {
        None | Some("latest") => Ok(Image { major: None, by_digest }),
        Some(tag) => match leading_number(tag).filter(|major| MAJORS.contains(major)) {
            Some(major) => Ok(Image { major: Some(major), by_digest }),
            None if by_digest => Ok(Image { major: None, by_digest }),
            None => Err(not_found()),
        },
    }
}

/// The full name a container runtime would use in its messages and in `imageID`.
pub(crate) fn full_name(reference: &str) -> String {
    split(reference).map_or_else(|| reference.to_owned(), |parts| canonical(&parts))
}

struct Parts<'a> {
    repository: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

fn split(reference: &str) -> Option<Parts<'_>> {
    let (name, digest) = match reference.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (reference, None),
    };
    let slash = name.rfind('/').map_or(0, |i| i + 1);
    let (repository, tag) = match name[slash..].find(':') {
        Some(colon) => (&name[..slash + colon], Some(&name[slash + colon + 1..])),
        None => (name, None),
    };
    let repository_ok = !repository.is_empty()
        && repository.split('/').all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && part.ends_with(|c: char| c.is_ascii_alphanumeric())
                && part
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-:".contains(c))
        });
    let tag_ok = tag.is_none_or(|tag| {
        (1..=128).contains(&tag.len())
            && !tag.starts_with(['.', '-'])
            && tag.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    });
    let digest_ok = digest.is_none_or(|digest| {
        digest.strip_prefix("sha256:").is_some_and(|hex| {
            hex.len() == 64 && hex.chars().all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase())
        })
    });
    (repository_ok && tag_ok && digest_ok).then_some(Parts { repository, tag, digest })
}

fn canonical(parts: &Parts<'_>) -> String {
    let registry = parts
        .repository
        .split_once('/')
        .map(|(first, _)| first)
        .filter(|first| first.contains(['.', ':']) || *first == "localhost");
    let prefix = match (registry, parts.repository.contains('/')) {
        (Some(_), _) => "",
        (None, true) => "docker.io/",
        (None, false) => "docker.io/library/",
    };
    let suffix = match (parts.tag, parts.digest) {
        (_, Some(digest)) => format!("@{digest}"),
        (Some(tag), None) => format!(":{tag}"),
        (None, None) => ":latest".to_owned(),
    };
    format!("{prefix}{}{suffix}", parts.repository)
}

fn not_found_message(parts: &Parts<'_>) -> String {
    let name = canonical(parts);
    format!(
        "failed to pull and unpack image \"{name}\": failed to resolve reference \"{name}\": {name}: not found"
    )
}

fn leading_number(tag: &str) -> Option<u32> {
    let end = tag.find(|c: char| !c.is_ascii_digit()).unwrap_or(tag.len());
    let rest_begins_well = tag[end..].is_empty()
        || tag[end..].starts_with(['.', '-'])
        || tag[end..].starts_with(char::is_alphabetic);
    rest_begins_well.then(|| tag[..end].parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_postgres_images_with_a_plausible_tag_run() {
        let digest = format!("postgres@sha256:{}", "a".repeat(64));
        let runs = |reference: &str| recognise(reference).map(|image| image.major);
        for (reference, major) in [
            ("postgres:17", Some(17)),
            ("postgres:16.4-bookworm", Some(16)),
            ("postgres:9.6", Some(9)),
            ("postgres:18beta1", Some(18)),
            ("postgres", None),
            ("postgres:latest", None),
            (digest.as_str(), None),
            ("registry.example.com:5000/team/my-postgresql:15", Some(15)),
        ] {
            assert_eq!(runs(reference), Ok(major), "{reference}");
        }
        for reference in
            ["postgres:does-not-exist", "postgres:19", "postgres:8", "busybox", "postgres/app:17"]
        {
            assert!(matches!(runs(reference), Err(PullError::NotFound(_))), "{reference}");
        }
        for reference in ["", "Postgres:17", "postgres:", "post gres", "postgres@sha256:12"] {
            assert!(matches!(runs(reference), Err(PullError::Invalid(_))), "{reference}");
        }
    }

    #[test]
    fn a_missing_tag_reads_like_a_registrys_answer() {
        let error = recognise("postgres:does-not-exist").expect_err("no such tag");
        assert!(error.message().ends_with("docker.io/library/postgres:does-not-exist: not found"));
        assert_eq!(full_name("quay.io/a/postgres"), "quay.io/a/postgres:latest");
        assert_eq!(full_name("a/postgres:17"), "docker.io/a/postgres:17");
    }
}
