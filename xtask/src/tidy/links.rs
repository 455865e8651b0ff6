//! Every relative link of every document leads somewhere, headings included.
//!
//! Must not touch the network: links to other sites are not followed.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::tree::{TextFile, Tree};

/// Checks the links of all documents.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| file.is_markdown()).flat_map(|file| of(file, tree)).collect()
}

fn of(file: &TextFile, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose(file) {
        for target in targets(line) {
            if let Some(message) = broken(file, target, tree) {
                findings.push(Finding::at(&file.path, number, "link", message));
            }
        }
    }
    findings
}

/// The lines that are not inside a block of code.
fn prose(file: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    file.lines().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// What the links of a line point at; quoted code is left out.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (index, piece) in line.split('`').enumerate() {
        // Every second piece lies between two backticks.
        if index % 2 == 1 {
            continue;
        }
        for start in piece.split("](").skip(1) {
            if let Some((target, _)) = start.split_once(')') {
                found.push(target.split(' ').next().unwrap_or(target));
            }
        }
    }
    // A label in backticks splits the link apart: `[`code`](target)` leaves "](target)" whole.
    found
}

/// Why a link leads nowhere, if it does.
fn broken(file: &TextFile, target: &str, tree: &Tree) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let full = if path.is_empty() { Some(file.path.clone()) } else { join(&file.path, path) };
    let Some(full) = full else { return Some(format!("`{target}` leaves the checkout")) };
    let folder = format!("{}/", full.trim_end_matches('/'));
    let Some(document) = tree.file(&full) else {
        let is_folder =
            full.is_empty() || tree.files.iter().any(|one| one.path.starts_with(&folder));
        return (!is_folder && !tree.root.join(&full).exists())
            .then(|| format!("`{target}` leads to no file"));
    };
    if heading.is_empty() || !document.is_markdown() || headings(document).contains(heading) {
        return None;
    }
    Some(format!("`{target}`: {full} has no such heading"))
}

/// Resolves a relative path against the folder of the file that holds it.
fn join(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a document's headings, made as the usual viewers make them.
fn headings(file: &TextFile) -> BTreeSet<String> {
    prose(file)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sample;

    fn messages(text: &str) -> Vec<String> {
        let tree = sample(&[
            ("docs/a.md", text),
            ("docs/b.md", "# One `heading`, two\n"),
            ("README.md", "# Top\n"),
        ]);
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn good_links_hold() {
        let text = "[b](b.md) [top](../README.md#top) [x](https://example.com/none) [d](../docs)\n\
                    [`code`](b.md#one-heading-two) `[no](link.md)`\n```\n[no](link.md)\n```\n";
        assert_eq!(messages(text), [""; 0]);
    }

    #[test]
    fn a_missing_file_is_found() {
        assert!(messages("[c](c.md)\n")[0].contains("no file"));
        assert!(messages("[`c`](c.md)\n")[0].contains("no file"));
        assert!(messages("[c](../../README.md)\n")[0].contains("leaves the checkout"));
    }

    #[test]
    fn a_missing_heading_is_found() {
        assert!(messages("[b](b.md#none)\n")[0].contains("no such heading"));
        assert!(messages("[here](#none)\n")[0].contains("no such heading"));
    }
}
