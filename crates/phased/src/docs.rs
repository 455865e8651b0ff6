//! A ladder as Markdown: the tables of phases, reasons and conditions for `docs/`.
//!
//! Must not add facts of its own: whatever is written here is in the [`LadderDoc`].

use std::fmt::Write as _;

use crate::ladder::{LadderDoc, RungDoc};

/// The ladder's chapter: heading of level 2, tables below headings of level 3, newline at the end.
pub fn markdown(doc: &LadderDoc) -> String {
    let mut out = format!("## {}\n", doc.kind);
    table(
        &mut out,
        "Phases",
        &["Phase", "Left when", "Brings about", "Gates", "Waits", "Reasons"],
        doc.rungs.iter().map(rung_row),
    );
    table(
        &mut out,
        "Phases aside",
        &["Phase", "In and out"],
        doc.aside.iter().map(|(phase, moves)| vec![code(phase), (*moves).to_owned()]),
    );
    table(
        &mut out,
        "Conditions",
        &["Type", "Meaning"],
        doc.conditions.iter().map(|(kind, meaning)| vec![code(kind), (*meaning).to_owned()]),
    );
    table(
        &mut out,
        "Reasons",
        &["Reason", "Meaning", "What ends it"],
        doc.reasons.iter().map(|r| vec![code(r.name), r.meaning.to_owned(), r.remedy.to_owned()]),
    );
    out
}

fn rung_row(rung: &RungDoc) -> Vec<String> {
    let reasons: Vec<String> = rung.reasons.iter().map(|reason| code(reason.name)).collect();
    let gates: Vec<String> = rung.gates.iter().map(|gate| code(gate)).collect();
    let effects = rung.effects.join(", ");
    let effects = match (effects.is_empty(), rung.tends) {
        (false, true) => format!("{effects}; repaired in every phase"),
        _ => effects,
    };
    vec![
        code(rung.phase),
        rung.leaves_when.to_owned(),
        effects,
        gates.join(", "),
        rung.wait.to_owned(),
        reasons.join(", "),
    ]
}

/// A heading and a table; nothing when there are no rows. Empty cells show a dash.
fn table(out: &mut String, title: &str, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "\n### {title}\n\n| {} |", heads.join(" | "));
    let _ = writeln!(out, "|{}", " --- |".repeat(heads.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

fn code(word: &str) -> String {
    format!("`{word}`")
}

/// A cell's text: a bar would end the cell, a line break the table.
fn escaped(cell: &str) -> String {
    if cell.is_empty() {
        return "–".to_owned();
    }
    cell.replace('|', "\\|").replace('\n', " ")
}
