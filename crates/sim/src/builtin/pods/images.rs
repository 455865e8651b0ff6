//! Which images a registry has, and which a node already holds.
//!
//! Must not run anything.

use std::collections::{BTreeMap, BTreeSet};

/// What happens when an image is pulled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageRule {
    /// There is no such image or tag.
    Missing,
    /// The registry wants credentials.
    Denied,
    /// The registry does not answer.
    Unreachable,
    /// The pull succeeds after so many milliseconds.
    Slow(i64),
}

/// Rules by image prefix (the longest wins), and each node's cache.
#[derive(Default)]
pub struct Images {
    rules: BTreeMap<String, ImageRule>,
    held: BTreeSet<(String, String)>,
}

impl Images {
    /// Sets the rule of every image that starts with `prefix`.
    pub fn rule(&mut self, prefix: &str, rule: ImageRule) {
        self.rules.insert(prefix.to_owned(), rule);
    }

    /// Takes a rule back.
    pub fn forget(&mut self, prefix: &str) {
        self.rules.remove(prefix);
    }

    /// Puts an image on a node, as a side load does.
    pub fn hold(&mut self, node: &str, image: &str) {
        self.held.insert((node.to_owned(), image.to_owned()));
    }

    pub(crate) fn held(&self, node: &str, image: &str) -> bool {
        self.held.contains(&(node.to_owned(), image.to_owned()))
    }

    pub(crate) fn rule_of(&self, image: &str) -> Option<&ImageRule> {
        let matching = self.rules.iter().filter(|(prefix, _)| image.starts_with(prefix.as_str()));
        matching.max_by_key(|(prefix, _)| prefix.len()).map(|(_, rule)| rule)
    }

    /// The error of a pull, in containerd's words; none when it succeeds.
    pub(crate) fn error(&self, image: &str) -> Option<String> {
        let full = full_name(image);
        let host = full.split('/').next().unwrap_or("docker.io").to_owned();
        let head = format!(
            "failed to pull and unpack image \"{full}\": failed to resolve reference \"{full}\""
        );
        match self.rule_of(image)? {
            ImageRule::Missing => {
                Some(format!("rpc error: code = NotFound desc = {head}: {full}: not found"))
            }
            ImageRule::Denied => Some(format!(
                "rpc error: code = Unknown desc = {head}: pull access denied, repository does not \
                 exist or may require authorization: server message: insufficient_scope: \
                 authorization failed"
            )),
            ImageRule::Unreachable => Some(format!(
                "rpc error: code = Unknown desc = {head}: failed to do request: Head \
                 \"https://{host}/v2/\": dial tcp: i/o timeout"
            )),
            ImageRule::Slow(_) => None,
        }
    }
}

/// The name with registry, library folder and tag, as containerd prints it.
fn full_name(image: &str) -> String {
    let first = image.split('/').next().unwrap_or("");
    let registry = image.contains('/') && (first.contains(['.', ':']) || first == "localhost");
    let mut name = match (registry, image.contains('/')) {
        (true, _) => image.to_owned(),
        (false, true) => format!("docker.io/{image}"),
        (false, false) => format!("docker.io/library/{image}"),
    };
    let last = name.rsplit('/').next().unwrap_or("");
    if !last.contains([':', '@']) {
        name.push_str(":latest");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_as_containerd_does() {
        let cases = [
            ("postgres", "docker.io/library/postgres:latest"),
            ("postgres:17", "docker.io/library/postgres:17"),
            ("bitnami/pg:1", "docker.io/bitnami/pg:1"),
            ("ghcr.io/a/b:1", "ghcr.io/a/b:1"),
            ("localhost:5000/x", "localhost:5000/x:latest"),
        ];
        for (image, full) in cases {
            assert_eq!(full_name(image), full);
        }
    }

    #[test]
    fn longest_rule_wins() {
        let mut images = Images::default();
        images.rule("postgres", ImageRule::Missing);
        images.rule("postgres:17", ImageRule::Slow(5));
        assert_eq!(images.rule_of("postgres:17.2"), Some(&ImageRule::Slow(5)));
        assert_eq!(images.rule_of("postgres:16"), Some(&ImageRule::Missing));
        assert!(images.error("postgres:16").is_some_and(|text| text.contains("not found")));
    }
}
