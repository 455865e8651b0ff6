//! Checks that need only the text of a file: header, leftovers, whitespace, paths of a machine.
//!
//! Must not parse: what needs the structure of Rust is in `names`, `size` and `sleeps`.

use std::path::Path;

use crate::finding::Finding;
use crate::tree::TextFile;

/// Words left behind by unfinished work, cut in two so that this file does not find itself.
const LEFTOVERS: [&str; 6] = [
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("XX", "X"),
    concat!("#[ign", "ore"),
];

/// Endings of files in which leftovers are looked for; documents may speak about them.
const CODE: [&str; 6] = [".rs", ".toml", ".yaml", ".yml", ".sh", ".ci/run"];

/// Endings of files whose whitespace somebody else decides.
const RECORDED: [&str; 5] = [".snap", ".out", ".lock", ".tsv", ".json"];

/// A package manager's folder, which has this name on every machine that has it.
const THE_SAME_EVERYWHERE: &str = concat!("/ho", "me/linuxbrew/");

/// Every Rust file says first what it is for.
pub(crate) fn header(file: &TextFile) -> Option<Finding> {
    let first = file.text.lines().next().unwrap_or_default();
    let said = first.strip_prefix("//!").is_some_and(|words| !words.trim().is_empty());
    let message = "must open with `//!`: what it is for, and what it must not do (rule 10)";
    (!said).then(|| Finding::at(&file.path, 1, "header", message.to_owned()))
}

/// No mark of unfinished work, and no test that is switched off.
pub(crate) fn markers(file: &TextFile) -> Vec<Finding> {
    if !CODE.iter().any(|ending| file.path.ends_with(ending)) {
        return Vec::new();
    }
    let found = |(number, line): (usize, &str)| {
        let word = LEFTOVERS.iter().find(|word| holds_word(line, word))?;
        let message = format!("`{word}` is left over: finish it, or file it and remove the mark");
        Some(Finding::at(&file.path, number, "leftover", message))
    };
    file.lines().filter_map(found).collect()
}

/// No spaces at the end of a line, and a line feed at the end of the file.
pub(crate) fn whitespace(file: &TextFile) -> Vec<Finding> {
    if RECORDED.iter().any(|ending| file.path.ends_with(ending)) {
        return Vec::new();
    }
    let mut findings: Vec<_> = file
        .lines()
        .filter(|(_, line)| line.ends_with([' ', '\t', '\r']))
        .map(|(number, _)| {
            Finding::at(&file.path, number, "whitespace", "space at the end".to_owned())
        })
        .collect();
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        let message = "no line feed at the end of the file".to_owned();
        findings.push(Finding::whole(&file.path, "whitespace", message));
    }
    findings
}

/// No path that exists only on the machine of whoever wrote the file.
pub(crate) fn machine_paths(file: &TextFile, root: &Path) -> Vec<Finding> {
    let root = root.to_string_lossy();
    let banned = [concat!("/ro", "ot/"), concat!("/ho", "me/"), root.as_ref()];
    let found = |(number, line): (usize, &str)| {
        let line = &line.replace(THE_SAME_EVERYWHERE, "");
        let path = banned.iter().find(|path| path.len() > 1 && starts_there(line, path))?;
        let message = format!("`{path}` is a path of one machine");
        Some(Finding::at(&file.path, number, "machine-path", message))
    };
    file.lines().filter_map(found).collect()
}

/// Whether a line holds the path and not merely a longer path that contains it.
fn starts_there(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        !line[..at].ends_with(|before: char| before.is_alphanumeric() || ".-_}".contains(before))
    })
}

/// Whether a line holds the word and not merely a longer word that contains it.
fn holds_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let closed = !word.ends_with(part) || !line[at + word.len()..].starts_with(part);
        closed && !line[..at].ends_with(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_file_without_a_header_is_found() {
        assert!(header(&file("a.rs", "fn main() {}\n")).is_some());
        assert!(header(&file("a.rs", "//!\n//! Late.\n")).is_some());
        assert!(header(&file("a.rs", "")).is_some());
        assert!(header(&file("a.rs", "//! Says what it is for.\n")).is_none());
    }

    #[test]
    fn every_leftover_is_found() {
        for word in LEFTOVERS {
            let line = format!("    {word} later\n");
            assert_eq!(markers(&file("a.rs", &line)).len(), 1, "{word}");
        }
    }

    #[test]
    fn longer_words_and_documents_are_no_leftovers() {
        let template = concat!("mktemp /tmp/a.XX", "XXXX\n");
        assert_eq!(markers(&file(".ci/run", template)), []);
        assert_eq!(markers(&file("STYLE.md", concat!("no TO", "DO\n"))), []);
    }

    #[test]
    fn trailing_space_and_a_missing_line_feed_are_found() {
        assert_eq!(whitespace(&file("a.md", "one \ntwo")).len(), 2);
        assert_eq!(whitespace(&file("a.md", "one\ntwo\n")), []);
        assert_eq!(whitespace(&file("a.snap", "one \n")), []);
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        let root = Path::new("/builds/checkout");
        for text in [concat!("in /ro", "ot/x"), concat!("\"/ho", "me/me\""), "/builds/checkout/a"] {
            assert_eq!(machine_paths(&file("a.md", text), root).len(), 1, "{text}");
        }
        let elsewhere = file("a.md", concat!("https://example.com/ho", "me/page\n"));
        assert_eq!(machine_paths(&elsewhere, root), []);
        let known = file("a.rs", concat!("\"/ho", "me/linuxbrew/.linuxbrew/opt\"\n"));
        assert_eq!(machine_paths(&known, root), []);
    }
}
