//! The shape of CHANGELOG.md: newest first, an `Unreleased` part, known headings, breaking first.
//!
//! Must not judge what the lines say.

use crate::finding::Finding;
use crate::tree::Tree;

const PATH: &str = "CHANGELOG.md";

/// Headings inside a release, in the order in which an upgrader needs them.
const PARTS: [&str; 6] = ["Breaking", "Added", "Changed", "Fixed", "Removed", "Security"];

/// Checks the changelog.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(PATH) else {
        return vec![Finding::whole(PATH, "changelog", "is missing".to_owned())];
    };
    let mut findings = Vec::new();
    let mut find = |line, message: &str| {
        findings.push(Finding::at(PATH, line, "changelog", message.to_owned()));
    };
    let mut releases = 0_usize;
    let mut place = None;
    for (number, line) in file.lines() {
        if let Some(release) = line.strip_prefix("## ") {
            releases += 1;
            place = None;
            if (releases == 1) != (release == "Unreleased") {
                find(number, "the first part, and only it, is `## Unreleased`");
            } else if releases > 1 && !is_release(release) {
                find(number, "a release reads `## 1.2.3 - 2026-01-31`");
            }
        } else if let Some(part) = line.strip_prefix("### ") {
            let at = PARTS.iter().position(|known| *known == part);
            if at.is_none() {
                find(number, "unknown heading: Breaking, Added, Changed, Fixed, Removed, Security");
            } else if at <= place {
                find(number, "headings come in the order Breaking, Added, Changed, Fixed, …");
            }
            place = at;
        }
    }
    if releases == 0 {
        find(0, "has no `## Unreleased`");
    }
    findings
}

/// Whether a heading is a version and a date.
fn is_release(text: &str) -> bool {
    let Some((version, date)) = text.split_once(" - ") else { return false };
    let numbers = |text: &str, mark: char| {
        let parts: Vec<_> = text.split(mark).collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
    };
    numbers(version, '.') && numbers(date, '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sample;

    fn count(text: &str) -> usize {
        check(&sample(&[(PATH, text)])).len()
    }

    #[test]
    fn a_good_changelog_holds() {
        let text = "# Changelog\n\n## Unreleased\n\n### Breaking\n\n- a\n\n### Added\n\n- b\n\n\
                    ## 0.1.0 - 2026-12-01\n\n### Added\n";
        assert_eq!(count(text), 0);
    }

    #[test]
    fn every_fault_of_shape_is_found() {
        assert_eq!(count("# Changelog\n"), 1, "no part at all");
        assert_eq!(count("## 0.1.0 - 2026-12-01\n"), 1, "nothing unreleased");
        assert_eq!(count("## Unreleased\n## 0.1.0\n"), 1, "no date");
        assert_eq!(count("## Unreleased\n### Novelties\n"), 1, "unknown heading");
        assert_eq!(count("## Unreleased\n### Added\n### Breaking\n"), 1, "breaking comes first");
        assert_eq!(check(&sample(&[])).len(), 1, "no file");
    }
}
