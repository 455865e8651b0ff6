//! The table of edges: what each crate may name in its manifest.
//!
//! The same table stands in ARCHITECTURE.md with the reasons; a new edge changes both in one commit
//! (STYLE.md, rule 9). Must not look at what dependencies pull in: `pure` does, where it matters.

use crate::edges::graph::{Graph, Package};
use crate::finding::Finding;

/// The crates that decide, and therefore may not reach the outside world.
pub(crate) const PURE: [&str; 3] = ["phased", "operators", "foresight"];

/// Which crates from outside the workspace may be named.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outside {
    /// These and no others.
    Only(&'static [&'static str]),
    /// All but these.
    AllBut(&'static [&'static str]),
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Workspace crates that it may link.
    pub(crate) ours: &'static [&'static str],
    /// Workspace crates that its tests may link besides.
    pub(crate) ours_in_tests: &'static [&'static str],
    /// Crates of others that it may link. Tests may link what they need.
    pub(crate) outside: Outside,
}

/// What a judge of the product, or a library of types, has no use for.
const CLIENTS: &[&str] = &["kube", "kube-client", "kube-runtime"];

/// The table.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "phased",
        ours: &[],
        ours_in_tests: &[],
        outside: Outside::Only(&[
            "kube-core",
            "k8s-openapi",
            "serde",
            "serde_json",
            "schemars",
            "jiff",
            "thiserror",
            "sha2",
            "percent-encoding",
        ]),
    },
    Row {
        name: "operators",
        ours: &["phased"],
        ours_in_tests: &[],
        outside: Outside::Only(&[
            "kube-core",
            "kube-derive",
            "k8s-openapi",
            "serde",
            "serde_json",
            "schemars",
            "jiff",
            "thiserror",
            "sha2",
            "percent-encoding",
            "base64",
        ]),
    },
    // Generic over the controller, as the runner is.
    Row {
        name: "foresight",
        ours: &["phased"],
        ours_in_tests: &[],
        outside: Outside::Only(&["k8s-openapi", "serde", "serde_json", "jiff", "base64"]),
    },
    // Generic over the controller, so that it cannot come to know one.
    Row {
        name: "runner",
        ours: &["phased"],
        ours_in_tests: &["sim", "operators", "testbed"],
        outside: Outside::AllBut(&["clap", "rcgen"]),
    },
    // A judge shares no code with the judged.
    Row { name: "sim", ours: &[], ours_in_tests: &["testbed"], outside: Outside::AllBut(CLIENTS) },
    Row {
        name: "localnode",
        ours: &[],
        ours_in_tests: &["sim", "testbed"],
        outside: Outside::AllBut(&["clap", "rcgen"]),
    },
    Row {
        name: "steadfast",
        ours: &["phased", "operators", "foresight", "runner", "sim", "localnode"],
        ours_in_tests: &["testbed"],
        outside: Outside::AllBut(&["rcgen"]),
    },
    // Only tests and `xtask` may use it.
    Row { name: "testbed", ours: &[], ours_in_tests: &[], outside: Outside::AllBut(&["clap"]) },
    Row {
        name: "xtask",
        ours: &["testbed"],
        ours_in_tests: &[],
        outside: Outside::Only(&["anyhow", "serde_json", "clap", "tokio", "syn", "proc-macro2"]),
    },
];

/// Compares the graph with the table.
pub(crate) fn check(graph: &Graph, rows: &[Row]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &graph.packages {
        match rows.iter().find(|row| row.name == package.name) {
            Some(row) => findings.extend(judge(package, row, graph)),
            None => findings.push(finding(package, "has no row in the table of edges".to_owned())),
        }
    }
    for row in rows.iter().filter(|row| !graph.is_ours(row.name)) {
        let message = format!("the table of edges has a row for `{}`, which is no crate", row.name);
        findings.push(Finding::whole("xtask/src/edges/table.rs", "edge", message));
    }
    findings
}

fn judge(package: &Package, row: &Row, graph: &Graph) -> Vec<Finding> {
    let allowed = |name: &str| match row.outside {
        _ if graph.is_ours(name) => row.ours.contains(&name),
        Outside::Only(names) => names.contains(&name),
        Outside::AllBut(names) => !names.contains(&name),
    };
    let allowed_in_tests = |name: &str| {
        !graph.is_ours(name) || row.ours.contains(&name) || row.ours_in_tests.contains(&name)
    };
    let linked = package.normal.iter().chain(&package.build).filter(|name| !allowed(name));
    let tested = package.dev.iter().filter(|name| !allowed_in_tests(name));
    let linked = linked.map(|name| finding(package, format!("may not depend on `{name}`")));
    let tested = tested.map(|name| finding(package, format!("may not use `{name}` in tests")));
    linked.chain(tested).collect()
}

fn finding(package: &Package, message: String) -> Finding {
    Finding::whole(&package.name, "edge", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[Row] = &[
        Row {
            name: "pure",
            ours: &[],
            ours_in_tests: &["judge"],
            outside: Outside::Only(&["serde"]),
        },
        Row { name: "judge", ours: &[], ours_in_tests: &[], outside: Outside::AllBut(&["kube"]) },
    ];

    fn package(name: &str, normal: &[&str], dev: &[&str]) -> Package {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Package { name: name.to_owned(), normal: owned(normal), dev: owned(dev), build: Vec::new() }
    }

    fn messages(pure: Package, judge: Package) -> Vec<String> {
        let graph = Graph { packages: vec![pure, judge] };
        check(&graph, SAMPLE).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn allowed_edges_hold() {
        let pure = package("pure", &["serde"], &["judge", "insta"]);
        assert_eq!(messages(pure, package("judge", &["tokio"], &["kube"])), [""; 0]);
    }

    #[test]
    fn every_forbidden_edge_is_found() {
        let judge = || package("judge", &[], &[]);
        let pure = || package("pure", &[], &[]);
        let client = messages(package("pure", &["reqwest"], &[]), judge());
        assert_eq!(client, ["may not depend on `reqwest`"]);
        let ours = messages(package("pure", &["judge"], &[]), judge());
        assert_eq!(ours, ["may not depend on `judge`"]);
        let banned = messages(pure(), package("judge", &["kube"], &[]));
        assert_eq!(banned, ["may not depend on `kube`"]);
        let tests = messages(pure(), package("judge", &[], &["pure"]));
        assert_eq!(tests, ["may not use `pure` in tests"]);
        let mut script = judge();
        script.build = vec!["kube".to_owned()];
        assert_eq!(messages(pure(), script), ["may not depend on `kube`"]);
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_found() {
        let found = messages(package("pure", &[], &[]), package("stranger", &[], &[]));
        assert_eq!(found.len(), 2);
    }
}
