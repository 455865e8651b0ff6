//! Purity: what the deciding crates link, and what they may not call.
//!
//! Two guards. `xtask/pure-allow.txt` lists every crate that may be linked into them, so that no
//! client, runtime or random source can come in behind another dependency. The `clippy.toml` beside
//! their manifests, one text for all, bans the standard library's clocks, files, environment,
//! threads, processes and sockets; clippy itself holds those bans, in `cargo xtask check`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::edges::PURE;
use crate::finding::Finding;
use crate::tool;
use crate::tree::Tree;

/// The list of what may be linked.
const ALLOWED: &str = "xtask/pure-allow.txt";
/// The text of the bans.
const BANS: &str = "xtask/pure-clippy.toml";

/// The crates that are linked into this one when it is built alone; procedural macros, which run in
/// the compiler, are left out.
pub(crate) fn linked(root: &Path, name: &str) -> Result<BTreeSet<String>> {
    let arguments =
        ["tree", "--package", name, "--edges", "normal,no-proc-macro", "--prefix", "none"];
    let text = tool::output(tool::cargo(root, &arguments).args(tool::binding(root)))?;
    Ok(text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

/// What is linked into this crate and not on the list.
pub(crate) fn check_closure(tree: &Tree, name: &str, linked: &BTreeSet<String>) -> Vec<Finding> {
    let allowed = allowed(tree);
    let ours = |package: &str| PURE.contains(&package);
    let strangers = linked.iter().filter(|one| !ours(one) && !allowed.contains(one.as_str()));
    strangers
        .map(|stranger| {
            let message = format!(
                "links `{stranger}`, which is not in {ALLOWED}: a pure crate has no client, \
                 runtime, clock or random source (see `cargo tree --package {name} --invert {stranger}`)"
            );
            Finding::whole(name, "pure", message)
        })
        .collect()
}

/// What is on the list and linked into none of the pure crates: the list holds no more than it must.
pub(crate) fn check_list(tree: &Tree, linked: &BTreeSet<String>) -> Vec<Finding> {
    let idle = allowed(tree).into_iter().filter(|name| !linked.contains(*name));
    let message = |name| format!("`{name}` is linked into no pure crate: remove it");
    idle.map(|name| Finding::whole(ALLOWED, "pure", message(name))).collect()
}

fn allowed(tree: &Tree) -> BTreeSet<&str> {
    let listed = tree.file(ALLOWED).map_or("", |file| file.text.as_str());
    listed
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// The bans stand beside every pure crate, unchanged, and no source lifts them.
pub(crate) fn check_bans(tree: &Tree) -> Vec<Finding> {
    let text = |path: &str| tree.file(path).map(|file| file.text.as_str());
    let mut findings = Vec::new();
    for name in PURE {
        let path = format!("crates/{name}/clippy.toml");
        if text(&path).is_none() || text(&path) != text(BANS) {
            let message = format!("must be the same text as {BANS}");
            findings.push(Finding::whole(&path, "pure", message));
        }
        let source = format!("crates/{name}/src/");
        for file in tree.rust().filter(|file| file.path.starts_with(&source)) {
            let lifted = file.lines().filter(|(_, line)| line.contains("clippy::disallowed"));
            findings.extend(lifted.map(|(number, _)| {
                let message = "the bans of a pure crate are not lifted in its source".to_owned();
                Finding::at(&file.path, number, "pure", message)
            }));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Output;

    use super::*;
    use crate::tree::{self, sample};

    #[test]
    fn a_stranger_in_the_closure_is_found() {
        let tree = sample(&[(ALLOWED, "# reason\nserde\n")]);
        let linked = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(
            check_closure(&tree, "operators", &linked(&["operators", "phased", "serde"])),
            []
        );
        let found = check_closure(&tree, "phased", &linked(&["phased", "tokio"]));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("`tokio`"));
        assert_eq!(check_list(&tree, &linked(&["phased", "serde"])), []);
        assert_eq!(check_list(&tree, &linked(&["phased"])).len(), 1);
    }

    #[test]
    fn missing_and_changed_and_lifted_bans_are_found() {
        let good = [
            (BANS, "bans\n"),
            ("crates/phased/clippy.toml", "bans\n"),
            ("crates/operators/clippy.toml", "bans\n"),
            ("crates/foresight/clippy.toml", "bans\n"),
        ];
        assert_eq!(check_bans(&sample(&good)), []);
        assert_eq!(check_bans(&sample(&good[..3])).len(), 1);
        let mut changed = good;
        changed[2].1 = "fewer bans\n";
        assert_eq!(check_bans(&sample(&changed)).len(), 1);
        let mut lifted = good.to_vec();
        lifted.push(("crates/phased/src/lib.rs", "#![allow(clippy::disallowed_methods)]\n"));
        assert_eq!(check_bans(&sample(&lifted)).len(), 1);
    }

    /// One line of a pure crate for each thing that it must not do.
    const VIOLATIONS: &[(&str, &str)] = &[
        ("monotonic clock", "let _ = std::time::Instant::now();"),
        ("wall clock", "let _ = std::time::SystemTime::now();"),
        ("random hash order", "let _ = std::collections::HashMap::<u8, u8>::new();"),
        ("random hash set", "let _ = std::collections::HashSet::<u8>::new();"),
        ("environment", "let _ = std::env::var(\"HOME\");"),
        ("arguments", "let _ = std::env::args();"),
        ("file read", "let _ = std::fs::read_to_string(\"a\");"),
        ("file handle", "let _ = std::fs::File::open(\"a\");"),
        ("thread", "let _ = std::thread::spawn(|| 1);"),
        ("sleep", concat!("std::thread::sl", "eep(std::time::Duration::ZERO);")),
        ("process", "let _ = std::process::Command::new(\"a\");"),
        ("exit", "std::process::exit(1);"),
        ("stream", "let _ = std::net::TcpStream::connect(\"a:1\");"),
        ("datagram", "let _ = std::net::UdpSocket::bind(\"a:1\");"),
        ("lock", "let _ = std::sync::Mutex::new(1);"),
        ("printing", "println!(\"a\");"),
        ("complaining", "eprintln!(\"a\");"),
        ("wall clock of jiff", "let _ = jiff::Timestamp::now();"),
        ("zoned clock of jiff", "let _ = jiff::Zoned::now();"),
        ("zone of the machine", "let _ = jiff::tz::TimeZone::system();"),
    ];

    /// Runs clippy under the bans over a crate with this body.
    fn clippy(folder: &Path, body: &str) -> Output {
        let manifest = "[package]\nname = \"scratch\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
                        [dependencies]\njiff = { version = \"0.2\", default-features = false, \
                        features = [\"std\"] }\n\n[workspace]\n";
        // The workspace's lock names a version of jiff that is here; no network is needed.
        fs::copy(tree::root().join("Cargo.lock"), folder.join("Cargo.lock"))
            .expect("copy the lock");
        let bans = tree::root().join(BANS);
        fs::create_dir_all(folder.join("src")).expect("create the scratch crate");
        fs::copy(bans, folder.join("clippy.toml")).expect("copy the bans");
        fs::write(folder.join("Cargo.toml"), manifest).expect("write the manifest");
        let text =
            format!("//! Scratch.\n\n/// Breaks a ban.\npub fn planted() {{\n    {body}\n}}\n");
        fs::write(folder.join("src/lib.rs"), text).expect("write the source");
        let arguments =
            ["clippy", "--offline", "--quiet", "--target-dir", "target", "--", "-D", "warnings"];
        tool::cargo(folder, &arguments).output().expect("run clippy")
    }

    #[test]
    fn every_planted_violation_fails_under_the_bans() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let clean = clippy(folder.path(), "let _ = 1;");
        assert!(clean.status.success(), "{}", String::from_utf8_lossy(&clean.stderr));
        for (what, body) in VIOLATIONS {
            let output = clippy(folder.path(), body);
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{what}: not found");
            assert!(text.contains("clippy::disallowed"), "{what}: {text}");
        }
    }
}
