//! No test sleeps a fixed time for something that can be watched (STYLE.md, rule 11).
//!
//! Must not look at product code: waiting there is the runner's business. A sleep under a paused
//! clock costs nothing and carries the mark `// virtual time`; the pause between two looks at
//! another process, which has no way to tell us, carries `// poll:` and what is looked at.

use crate::finding::Finding;
use crate::tidy::source::Source;
use crate::tree::TextFile;

/// Calls that wait for a clock, cut in two so that this file does not find itself.
const SLEEPS: [&str; 3] =
    [concat!("thread::sl", "eep("), concat!("time::sl", "eep("), concat!(" sl", "eep(")];

/// Marks that explain a sleep, on its line or on the line before.
const MARKS: [&str; 2] = ["// virtual time", "// poll:"];

/// Every sleep in a test carries a mark.
pub(crate) fn check(file: &TextFile, source: &Source) -> Vec<Finding> {
    let whole_file = file.path.contains("/tests/");
    let mut before = "";
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        let sleeps =
            SLEEPS.iter().any(|call| line.contains(call)) && !line.trim_start().starts_with("//");
        let marked = MARKS.iter().any(|mark| line.contains(mark) || before.contains(mark));
        if sleeps && !marked && (whole_file || source.in_tests(number)) {
            let message = "a test sleeps: watch for the event, or pause the clock and mark the \
                           line `// virtual time`"
                .to_owned();
            findings.push(Finding::at(&file.path, number, "sleep", message));
        }
        before = line;
    }
    findings
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
    fn sleeps_of_tests_are_found() {
        for call in SLEEPS {
            let text = format!("fn wait() {{\n    {call}second());\n}}\n");
            assert_eq!(count("crates/a/tests/b.rs", &text), 1, "{call}");
            let inline = format!("#[cfg(test)]\nmod tests {{\n{text}}}\n");
            assert_eq!(count("crates/a/src/b.rs", &inline), 1, "{call}");
        }
    }

    #[test]
    fn marked_sleeps_and_product_code_are_left_alone() {
        let call = SLEEPS[1];
        let marked = format!("fn wait() {{\n    {call}second()); // virtual time\n}}\n");
        assert_eq!(count("crates/a/tests/b.rs", &marked), 0);
        let polled = format!("fn wait() {{\n    // poll: the socket\n    {call}second());\n}}\n");
        assert_eq!(count("crates/a/tests/b.rs", &polled), 0);
        let product = format!("fn wait() {{\n    {call}second());\n}}\n");
        assert_eq!(count("crates/a/src/b.rs", &product), 0);
    }
}
