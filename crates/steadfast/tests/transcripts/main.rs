//! The transcripts in docs/foresight.md are what the commands print.
//!
//! Each scene is played on the simulated cluster under virtual time, with a command line that is parsed
//! as the binary parses it. `UPDATE_TRANSCRIPTS=1 cargo test -p steadfast --test transcripts` writes what
//! came out into the document.

#[path = "../support/mod.rs"]
mod support;

mod scenes;
mod shell;
mod states;

use std::path::PathBuf;

use support::simulate;

/// Set to write the transcripts into the document.
const UPDATE: &str = "UPDATE_TRANSCRIPTS";

fn document() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/foresight.md")
}

/// Where the transcript below a heading begins and ends.
fn place(document: &str, heading: &str) -> Option<std::ops::Range<usize>> {
    const FENCE: &str = "```text\n";
    let below = document.find(&format!("\n### {heading}\n"))?;
    let begin = below + document[below..].find(FENCE)? + FENCE.len();
    let end = begin + document[begin..].find("```\n")?;
    Some(begin..end)
}

fn is_true(heading: &str, played: String) {
    let document = document();
    let text = std::fs::read_to_string(&document).expect("the document is readable");
    let place = place(&text, heading).expect("the document has such a transcript");
    if std::env::var_os(UPDATE).is_some() {
        let written = [&text[..place.start], &played, &text[place.end..]].concat();
        std::fs::write(&document, written).expect("the document is writable");
        return;
    }
    let shown = &text[place];
    assert_eq!(shown, played, "{heading}: write it anew with {UPDATE}=1");
}

#[test]
fn what_the_document_shows_is_what_the_commands_print() {
    let played = [
        ("A first install", simulate(|| async { scenes::a_first_install().await })),
        ("An image change", simulate(|| async { scenes::an_image_change().await })),
        (
            "An image change on three replicas",
            simulate(|| async { scenes::an_image_change_on_three_replicas().await }),
        ),
        ("Fewer replicas", simulate(|| async { scenes::fewer_replicas().await })),
        ("A storage shrink", simulate(|| async { scenes::a_storage_shrink().await })),
        ("A stuck rollout", simulate(|| async { scenes::a_stuck_rollout().await })),
        ("A missing dependency", simulate(|| async { scenes::a_missing_dependency().await })),
        ("An edit by another manager", simulate(|| async { scenes::another_manager().await })),
    ];
    for (heading, transcript) in played {
        is_true(heading, transcript);
    }
}
