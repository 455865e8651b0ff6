//! Banned names of modules, and re-exports that hide what they re-export (STYLE.md, rules 3 and 9).
//!
//! Must not judge the names of types and functions: a reviewer does that better.

use crate::finding::Finding;
use crate::tidy::source::Source;
use crate::tree::TextFile;

/// Names under which anything could be filed, and so everything would be.
const BANNED: [&str; 9] =
    ["utils", "util", "helpers", "helper", "common", "manager", "misc", "stuff", "shared"];

/// No file and no folder of source has a banned name.
pub(crate) fn path(file: &TextFile) -> Option<Finding> {
    if !file.is_rust() {
        return None;
    }
    let part = file.path.trim_end_matches(".rs").split('/').find(|part| BANNED.contains(part))?;
    Some(Finding::whole(&file.path, "name", complaint(part)))
}

/// No module has a banned name.
pub(crate) fn modules(file: &TextFile, source: &Source) -> Vec<Finding> {
    let banned = source.modules.iter().filter(|(name, _)| BANNED.contains(&name.as_str()));
    banned.map(|(name, line)| Finding::at(&file.path, *line, "name", complaint(name))).collect()
}

/// No `pub use` ends in a star: a public name is written where it is made public.
pub(crate) fn reexports(file: &TextFile, source: &Source) -> Vec<Finding> {
    let message = "names what it re-exports: no star (rule 9)";
    let finding = |line: &usize| Finding::at(&file.path, *line, "glob", message.to_owned());
    source.glob_reexports.iter().map(finding).collect()
}

fn complaint(name: &str) -> String {
    format!("`{name}` says nothing about the domain: name it after what it holds (rule 3)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::parse;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn banned_files_folders_and_modules_are_found() {
        for name in BANNED {
            assert!(path(&file(&format!("crates/a/src/{name}.rs"), "")).is_some());
            assert!(path(&file(&format!("crates/a/src/{name}/mod.rs"), "")).is_some());
            let text = format!("mod {name} {{}}\n");
            let source = parse(&text).expect("valid source");
            assert_eq!(modules(&file("a.rs", &text), &source).len(), 1);
        }
        assert!(path(&file("crates/a/src/ledger.rs", "")).is_none());
    }

    #[test]
    fn a_star_in_a_public_re_export_is_found() {
        for text in ["pub use a::*;\n", "pub(crate) use a::{b, c::*};\n"] {
            let source = parse(text).expect("valid source");
            assert_eq!(reexports(&file("a.rs", text), &source).len(), 1, "{text}");
        }
        let private = "use super::*;\npub use a::b;\n";
        let source = parse(private).expect("valid source");
        assert_eq!(reexports(&file("a.rs", private), &source), []);
    }
}
