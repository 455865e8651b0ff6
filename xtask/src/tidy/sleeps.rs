//! No test sleeps a fixed time for something that can be watched (STYLE.md, rule 11).
//!
//! Must not look at product code: waiting there is the runner's business. A sleep under a paused
//! clock costs nothing and carries the mark `// virtual time`, or stands in a file whose header says
//! that all of it runs under virtual time; the pause between two looks at another process, which
//! has no way to tell us, carries `// poll:` and what is looked at.

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
    if runs_under_virtual_time(&file.text) {
        return Vec::new();
    }
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

/// Whether the file's header says so, and nothing in it starts a runtime with a clock of its own.
fn runs_under_virtual_time(text: &str) -> bool {
    let mut header = text.lines().take_while(|line| line.starts_with("//!"));
    let said = header.any(|line| line.contains("under virtual time"));
    said && !text.contains("multi_thread") && !text.contains("std::thread")
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
    fn a_file_under_virtual_time_may_let_time_pass_unless_it_starts_a_real_clock() {
        let header = "//! Everything here runs under virtual time.\n";
        let body = format!("fn wait() {{\n    {}second());\n}}\n", SLEEPS[1]);
        assert_eq!(count("crates/a/tests/b.rs", &format!("{header}{body}")), 0);
        let real = format!("{header}#[tokio::test(flavor = \"multi_thread\")]\n{body}");
        assert_eq!(count("crates/a/tests/b.rs", &real), 1);
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
