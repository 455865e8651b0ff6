//! ARCHITECTURE.md names every crate, so that the map cannot fall behind the territory.
//!
//! Must not check what it says about them.

use crate::finding::Finding;
use crate::tree::Tree;

const PATH: &str = "ARCHITECTURE.md";

/// Every crate is named in backticks.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let text = tree.file(PATH).map_or("", |file| file.text.as_str());
    let named = |name: &String| text.contains(&format!("`{name}`"));
    let mut crates = tree.crates();
    crates.push("xtask".to_owned());
    crates
        .into_iter()
        .filter(|name| !named(name))
        .map(|name| Finding::whole(PATH, "map", format!("does not name the crate `{name}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sample;

    #[test]
    fn a_crate_that_is_not_on_the_map_is_found() {
        let map = (PATH, "`ledger` and `xtask`\n");
        let good = sample(&[map, ("crates/ledger/Cargo.toml", "")]);
        assert_eq!(check(&good), []);
        let bad = sample(&[map, ("crates/gate/Cargo.toml", "")]);
        assert_eq!(check(&bad).len(), 1);
    }
}
