//! Every crate that is linked comes under a licence that `deny.toml` allows.
//!
//! `cargo deny` does this, and more, where it is installed. Where it is not, the licence expressions
//! in the manifests are compared with the same list; texts, sources and duplicates are not looked at
//! then, and the outcome says so.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::step::Outcome;
use crate::tool;

/// Runs `cargo deny`, or the built-in comparison.
pub(crate) fn run(root: &Path) -> Result<Outcome> {
    if tool::on_path("cargo-deny").is_some() {
        // Advisories need the network and change without us: a scheduled run looks at them.
        let arguments = ["deny", "--offline", "check", "licenses", "bans", "sources"];
        tool::must(&mut tool::cargo(root, &arguments))?;
        return Ok(Outcome::Noted("by cargo deny".to_owned()));
    }
    let text = std::fs::read_to_string(root.join("deny.toml")).context("read deny.toml")?;
    let allowed = allowed(&text)?;
    let mut command = tool::cargo(root, &["metadata", "--format-version", "1"]);
    let metadata = tool::output(command.args(tool::binding(root)))?;
    let value: Value = serde_json::from_str(&metadata).context("read cargo's metadata")?;
    let packages = value["packages"].as_array().context("metadata without packages")?;
    let refused: Vec<_> =
        packages.iter().filter_map(|package| refusal(package, &allowed)).collect();
    for line in &refused {
        println!("{line}");
    }
    if !refused.is_empty() {
        bail!("{} crate(s) under a licence that deny.toml does not allow", refused.len());
    }
    Ok(Outcome::Noted(format!(
        "{} crates by the built-in comparison: cargo deny is not installed",
        packages.len()
    )))
}

/// The `allow` list of `deny.toml`: quoted names between `allow = [` and `]`.
fn allowed(text: &str) -> Result<BTreeSet<String>> {
    let (_, rest) = text.split_once("\nallow = [").context("deny.toml has no `allow = [`")?;
    let (list, _) = rest.split_once(']').context("the `allow` list of deny.toml does not end")?;
    let names = list.lines().flat_map(|line| {
        let code = line.split('#').next().unwrap_or_default();
        code.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    });
    Ok(names.collect())
}

/// Why a package may not be used, if so.
fn refusal(package: &Value, allowed: &BTreeSet<String>) -> Option<String> {
    let name = package["name"].as_str().unwrap_or_default();
    match package["license"].as_str() {
        None => Some(format!("{name}: names no licence")),
        Some(licence) if !satisfied(licence, allowed) => Some(format!("{name}: {licence}")),
        Some(_) => None,
    }
}

/// Whether an SPDX expression can be met with the allowed licences alone.
fn satisfied(expression: &str, allowed: &BTreeSet<String>) -> bool {
    // Old manifests write "MIT/Apache-2.0" where they mean a choice.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Expression { words: &words, at: 0, allowed };
    reader.choice() && reader.at == words.len()
}

/// Reads an SPDX expression from left to right; `OR` binds less than `AND`, `AND` less than `WITH`.
struct Expression<'a> {
    words: &'a [&'a str],
    at: usize,
    allowed: &'a BTreeSet<String>,
}

impl Expression<'_> {
    fn take(&mut self, word: &str) -> bool {
        let there = self.words.get(self.at).is_some_and(|next| next.eq_ignore_ascii_case(word));
        self.at += usize::from(there);
        there
    }

    fn choice(&mut self) -> bool {
        let mut met = self.all();
        while self.take("OR") {
            met |= self.all();
        }
        met
    }

    fn all(&mut self) -> bool {
        let mut met = self.one();
        while self.take("AND") {
            met &= self.one();
        }
        met
    }

    fn one(&mut self) -> bool {
        if self.take("(") {
            return self.choice() & self.take(")");
        }
        let Some(licence) = self.words.get(self.at) else { return false };
        self.at += 1;
        let mut name = (*licence).to_owned();
        if self.take("WITH") {
            let Some(exception) = self.words.get(self.at) else { return false };
            self.at += 1;
            name = format!("{name} WITH {exception}");
        }
        self.allowed.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> BTreeSet<String> {
        let text = "[licenses]\nallow = [\n    \"MIT\", # a \"reason\"\n    \"Apache-2.0\",\n    \
                    \"Apache-2.0 WITH LLVM-exception\",\n]\n";
        allowed(text).expect("a list")
    }

    #[test]
    fn the_list_is_read_without_its_comments() {
        let expected = ["Apache-2.0", "Apache-2.0 WITH LLVM-exception", "MIT"];
        assert_eq!(list().iter().map(String::as_str).collect::<Vec<_>>(), expected);
        assert!(allowed("[licenses]\n").is_err());
    }

    #[test]
    fn allowed_expressions_are_met() {
        let good = [
            "MIT",
            "MIT OR GPL-3.0-only",
            "GPL-3.0-only/MIT",
            "MIT AND Apache-2.0",
            "(GPL-3.0-only OR MIT) AND Apache-2.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0-only",
        ];
        for expression in good {
            assert!(satisfied(expression, &list()), "{expression}");
        }
    }

    #[test]
    fn other_expressions_are_refused() {
        let bad = [
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "MIT AND (GPL-3.0-only OR MPL-2.0)",
            "GPL-2.0-only WITH Classpath-exception-2.0",
            "(MIT",
            "MIT )",
            "",
        ];
        for expression in bad {
            assert!(!satisfied(expression, &list()), "{expression}");
        }
        let nameless = serde_json::json!({"name": "a", "license": null});
        assert!(refusal(&nameless, &list()).is_some());
    }
}
