//! No controller imports another: what two of them need lives in `parts`.
//!
//! Must not look beyond the source text; the crate's own modules are no edges that cargo knows.

use crate::finding::Finding;
use crate::tree::Tree;

const SOURCE: &str = "crates/operators/src/";

/// Modules of `operators` that every controller may import, and that may import every controller.
const OPEN: [&str; 2] = ["parts", "catalog"];

/// Checks the imports between the controllers' folders.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut controllers: Vec<&str> = tree
        .rust()
        .filter_map(|file| file.path.strip_prefix(SOURCE)?.strip_suffix("/mod.rs"))
        .filter(|name| !name.contains('/') && !OPEN.contains(name))
        .collect();
    controllers.sort_unstable();
    let mut findings = Vec::new();
    for file in tree.rust() {
        let Some((own, _)) = file.path.strip_prefix(SOURCE).and_then(|path| path.split_once('/'))
        else {
            continue;
        };
        for other in controllers.iter().filter(|other| controllers.contains(&own) && **other != own)
        {
            let import = format!("crate::{other}");
            let lines = file.lines().filter(|(_, line)| line.contains(&import));
            findings.extend(lines.map(|(number, _)| {
                let message = format!("`{own}` imports `{other}`: move what both need to `parts`");
                Finding::at(&file.path, number, "edge", message)
            }));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sample;

    #[test]
    fn a_controller_that_imports_another_is_found() {
        let other = ("crates/operators/src/rabbitmq/mod.rs", "");
        let parts = ("crates/operators/src/parts/mod.rs", "");
        let good = ("crates/operators/src/database/mod.rs", "use crate::parts::storage;\n");
        assert_eq!(check(&sample(&[other, parts, good])), []);
        let bad = ("crates/operators/src/database/mod.rs", "use crate::rabbitmq::config;\n");
        assert_eq!(check(&sample(&[other, parts, bad])).len(), 1);
    }
}
