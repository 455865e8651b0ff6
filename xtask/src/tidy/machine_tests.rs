//! Every test that needs programs of the machine is in the table that `cargo xtask test` works through.
//!
//! Must not run them. A test that is in no table would be skipped everywhere, and nobody would know.

use crate::finding::Finding;
use crate::machine::MACHINE_TESTS;
use crate::tree::{TextFile, Tree};

/// How a test says that it needs something of the machine, cut in two so as not to find this file.
const SIGNS: [&str; 4] = [
    concat!("STEADFAST_REQUIRE", "_ALL"),
    concat!("STEADFAST_HERM", "ETIC"),
    concat!("require_or", "_skip("),
    concat!("or", "_skip("),
];

const TABLE: &str = "xtask/src/machine.rs";

/// Both directions: tests that the table lacks, and rows that name no test.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let listed = |package: &str, target: &str| {
        MACHINE_TESTS.iter().any(|test| test.package == package && test.target == target)
    };
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| SIGNS.iter().any(|sign| file.text.contains(sign))) {
        for (path, package, target) in targets(file, tree) {
            if !listed(package, target) {
                let message =
                    format!("needs the machine, but `{package}`/`{target}` is not in {TABLE}");
                findings.push(Finding::whole(path, "machine-test", message));
            }
        }
    }
    if tree.file(TABLE).is_some() {
        findings.extend(
            MACHINE_TESTS.iter().filter(|test| !exists(test.package, test.target, tree)).map(
                |test| {
                    let message = format!("no test target `{}` in `{}`", test.target, test.package);
                    Finding::whole(TABLE, "machine-test", message)
                },
            ),
        );
    }
    findings
}

/// The test targets that a file below a `tests` folder is part of: path, package, target. A folder
/// without `main.rs` is shared, and part of every target that declares it as a module.
fn targets<'a>(file: &'a TextFile, tree: &'a Tree) -> Vec<(&'a str, &'a str, &'a str)> {
    if let Some((package, target)) = integration_test(file) {
        return vec![(&file.path, package, target)];
    }
    let parts: Vec<&str> = file.path.split('/').collect();
    let &["crates", package, "tests", folder, ..] = parts.as_slice() else { return Vec::new() };
    let module = format!("mod {folder};");
    tree.rust()
        .filter(|other| other.text.contains(&module))
        .filter_map(|other| Some((other, integration_test(other)?)))
        .filter(|(_, (of, _))| *of == package)
        .map(|(other, (package, target))| (other.path.as_str(), package, target))
        .collect()
}

/// The package and the name of the test target whose root a file is.
fn integration_test(file: &TextFile) -> Option<(&str, &str)> {
    let mut parts = file.path.strip_prefix("crates/")?.split('/');
    let package = parts.next()?;
    if parts.next()? != "tests" {
        return None;
    }
    let target = parts.next()?;
    let is_target = target.ends_with(".rs") || parts.next() == Some("main.rs");
    is_target.then(|| (package, target.trim_end_matches(".rs")))
}

fn exists(package: &str, target: &str, tree: &Tree) -> bool {
    let folder = format!("crates/{package}/tests/{target}");
    let file = |path: String| tree.file(&path).is_some();
    file(format!("{folder}.rs")) || file(format!("{folder}/main.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sample;

    #[test]
    fn a_machine_test_that_is_in_no_table_is_found() {
        let text = format!("fn a() {{ {}REQUIRE_ALL }}", "STEADFAST_");
        let tree = sample(&[("crates/runner/tests/unheard_of.rs", &text)]);
        assert_eq!(check(&tree).len(), 1);
        let tree = sample(&[("crates/runner/tests/unheard_of/main.rs", &text)]);
        assert_eq!(check(&tree).len(), 1);
        let shared = ("crates/runner/tests/bench/mod.rs", text.as_str());
        let user = ("crates/runner/tests/unheard_of.rs", "mod bench;\n");
        assert_eq!(check(&sample(&[shared, user])).len(), 1);
        let tree = sample(&[("crates/runner/tests/unheard_of.rs", "fn a() {}")]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn a_row_without_a_test_is_found() {
        let tree = sample(&[(TABLE, "")]);
        assert_eq!(check(&tree).len(), MACHINE_TESTS.len());
    }
}
