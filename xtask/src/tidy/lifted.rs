//! Lints that the source lifts: always with a reason, and unsafe code in test binaries only.
//!
//! Must not say which lints there are: the root manifest does. The pure crates' bans are held by
//! `edges`.

use crate::finding::Finding;
use crate::tidy::source::Source;
use crate::tree::TextFile;

/// Attributes that lift a lint, cut in two so that this file does not find itself.
const LIFTS: [&str; 4] = [
    concat!("#[al", "low("),
    concat!("#![al", "low("),
    concat!("#[ex", "pect("),
    concat!("#![ex", "pect("),
];

/// Checks the attributes of a file.
pub(crate) fn check(file: &TextFile, source: &Source) -> Vec<Finding> {
    let is_test = file.path.contains("/tests/");
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        if !LIFTS.iter().any(|lift| line.trim_start().starts_with(lift)) {
            continue;
        }
        let mut find = |message: &str| {
            findings.push(Finding::at(&file.path, number, "lifted", message.to_owned()));
        };
        if line.contains("unsafe_code") && !is_test {
            find("unsafe code stays in test binaries (STYLE.md, the last part)");
        } else if !is_test && !source.in_tests(number) && !reason_follows(file, number) {
            find("a lifted lint says why: `reason = \"…\"`");
        }
    }
    findings
}

/// Whether the attribute that begins in this line has a reason before it ends.
fn reason_follows(file: &TextFile, line: usize) -> bool {
    for text in file.text.lines().skip(line - 1) {
        if text.contains("reason =") {
            return true;
        }
        if text.trim_end().ends_with(")]") {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::parse;

    fn count(path: &str, text: &str) -> usize {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        check(&file, &parse(text).expect("valid source")).len()
    }

    #[test]
    fn unsafe_code_outside_test_binaries_is_found() {
        let text = format!("{}unsafe_code, reason = \"a\")]\n", LIFTS[1]);
        assert_eq!(count("crates/a/src/lib.rs", &text), 1);
        assert_eq!(count("crates/a/tests/seeded.rs", &text), 0);
    }

    #[test]
    fn a_lifted_lint_without_a_reason_is_found() {
        for lift in &LIFTS[..2] {
            let bare = format!("{lift}clippy::panic)]\nfn a() {{}}\n");
            let bare = if lift.starts_with("#!") { bare } else { format!("fn b() {{}}\n{bare}") };
            assert_eq!(count("crates/a/src/lib.rs", &bare), 1, "{lift}");
            assert_eq!(count("crates/a/tests/b.rs", &bare), 0, "{lift}");
        }
        let long =
            format!("{}\n    clippy::panic,\n    reason = \"a\"\n)]\nfn a() {{}}\n", LIFTS[0]);
        assert_eq!(count("crates/a/src/lib.rs", &long), 0);
        let other = format!("{}clippy::panic)]\nfn a() {{}}\n// reason = none\n", LIFTS[0]);
        assert_eq!(count("crates/a/src/lib.rs", &other), 1);
    }
}
