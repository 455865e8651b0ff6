//! The list of today's oversize items. It may only shrink.
//!
//! Must not measure: sizes come from `size`. An item that is not listed fails, one that grew
//! fails, and one that shrank or went fails too until its line says so.

use std::collections::BTreeMap;
use std::fmt;

use crate::finding::Finding;

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Measure {
    File,
    Function,
    Parameters,
}

impl Measure {
    const ALL: [Measure; 3] = [Measure::File, Measure::Function, Measure::Parameters];

    fn word(self) -> &'static str {
        match self {
            Measure::File => "file",
            Measure::Function => "function",
            Measure::Parameters => "parameters",
        }
    }
}

/// One oversize item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) measure: Measure,
    pub(crate) path: String,
    /// Name of the function; empty for a file.
    pub(crate) name: String,
    pub(crate) size: usize,
}

/// What names an item whatever its size.
type Key = (Measure, String, String);

impl fmt::Display for Item {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {}", self.measure.word(), self.size, self.path)?;
        if self.name.is_empty() { Ok(()) } else { write!(out, " {}", self.name) }
    }
}

/// The text of the list for these items.
pub(crate) fn written(items: &[Item]) -> String {
    let mut text = String::from(
        "# Items over the limits of STYLE.md, rule 4, with today's size. May only shrink.\n\
         # A new line here is an exception and is reviewed as one: cargo xtask tidy --write-ratchet\n",
    );
    for ((measure, path, name), size) in largest(items) {
        let item = Item { measure, path, name, size };
        text.push_str(&format!("{item}\n"));
    }
    text
}

/// Compares the list with what was measured.
pub(crate) fn check(listed: &str, measured: &[Item], path: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut allowed: BTreeMap<Key, (usize, usize)> = BTreeMap::new();
    for (index, line) in listed.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match read(line) {
            Some(item) => {
                allowed.insert((item.measure, item.path, item.name), (item.size, index + 1));
            }
            None => {
                let message = format!("not an entry of the ratchet: `{line}`");
                findings.push(Finding::at(path, index + 1, "ratchet", message));
            }
        }
    }
    for (key, size) in largest(measured) {
        findings.extend(judge(&key, size, allowed.remove(&key), path));
    }
    for (key, (_, line)) in allowed {
        let message = format!("{} is within the limit now: remove this line", described(&key));
        findings.push(Finding::at(path, line, "ratchet", message));
    }
    findings
}

/// Compares one measured size with the listed one, if there is one.
fn judge(key: &Key, size: usize, listed: Option<(usize, usize)>, path: &str) -> Option<Finding> {
    let what = described(key);
    match listed {
        None => {
            let message = format!("{what} has {size}, over the limit: split it (STYLE.md, rule 4)");
            Some(Finding::whole(&key.1, "size", message))
        }
        Some((was, line)) if size > was => {
            let message = format!("{what} grew from {was} to {size}: the ratchet only shrinks");
            Some(Finding::at(path, line, "ratchet", message))
        }
        Some((was, line)) if size < was => {
            let message = format!("{what} shrank from {was} to {size}: lower this line");
            Some(Finding::at(path, line, "ratchet", message))
        }
        Some(_) => None,
    }
}

/// The largest size for each key: two `impl` blocks may hold functions of the same name.
fn largest(items: &[Item]) -> BTreeMap<Key, usize> {
    let mut sizes = BTreeMap::new();
    for item in items {
        let size =
            sizes.entry((item.measure, item.path.clone(), item.name.clone())).or_insert(item.size);
        *size = item.size.max(*size);
    }
    sizes
}

fn described((measure, path, name): &Key) -> String {
    match measure {
        Measure::File => format!("file {path} (lines)"),
        Measure::Function => format!("function `{name}` in {path} (lines)"),
        Measure::Parameters => format!("function `{name}` in {path} (parameters)"),
    }
}

fn read(line: &str) -> Option<Item> {
    let mut words = line.splitn(4, ' ');
    let word = words.next()?;
    let measure = Measure::ALL.into_iter().find(|measure| measure.word() == word)?;
    let size = words.next()?.parse().ok()?;
    let path = words.next()?.to_owned();
    let name = words.next().unwrap_or_default().to_owned();
    Some(Item { measure, path, name, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(size: usize) -> Item {
        Item {
            measure: Measure::Function,
            path: "crates/a/src/lib.rs".to_owned(),
            name: "Store as Clone::clone".to_owned(),
            size,
        }
    }

    fn messages(listed: &str, measured: &[Item]) -> Vec<String> {
        let findings = check(listed, measured, "ratchet.txt");
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn what_was_written_holds() {
        let items = [item(90)];
        assert_eq!(messages(&written(&items), &items), [""; 0]);
    }

    #[test]
    fn an_unlisted_item_fails() {
        assert!(messages("", &[item(90)])[0].contains("split it"));
    }

    #[test]
    fn a_grown_item_fails() {
        assert!(messages(&written(&[item(90)]), &[item(91)])[0].contains("grew from 90 to 91"));
    }

    #[test]
    fn a_shrunk_item_fails_until_its_line_is_lowered() {
        assert!(messages(&written(&[item(90)]), &[item(80)])[0].contains("lower this line"));
    }

    #[test]
    fn an_item_that_is_small_now_fails_until_its_line_is_removed() {
        assert!(messages(&written(&[item(90)]), &[])[0].contains("remove this line"));
    }

    #[test]
    fn a_line_that_is_no_entry_fails() {
        assert!(messages("functions many\n", &[])[0].contains("not an entry"));
    }
}
