//! A ladder as a drawing: Mermaid, DOT, SVG.
//!
//! Must not add facts: whatever is drawn is in the [`LadderDoc`].

mod svg;

use std::fmt::Write as _;

use phased::ladder::LadderDoc;

pub use svg::svg;

/// As a state diagram of Mermaid.
pub fn mermaid(doc: &LadderDoc) -> String {
    let mut out = String::from("stateDiagram-v2\n");
    let mut line = |text: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {text}");
    };
    if let Some(first) = doc.rungs.first() {
        line(format!("[*] --> {}", first.phase));
    }
    for pair in doc.rungs.windows(2) {
        if let [from, to] = pair {
            line(format!("{} --> {}: {}", from.phase, to.phase, quiet(from.leaves_when)));
        }
    }
    if let (Some(last), Some(first)) = (doc.rungs.last(), doc.rungs.first()) {
        line(format!(
            "{} --> {}: back at once to the first rung that no longer holds",
            last.phase, first.phase
        ));
    }
    for (phase, moves) in &doc.aside {
        line(format!("state {phase}"));
        line(format!("note right of {phase}"));
        line(format!("  {}", quiet(moves)));
        line("end note".to_owned());
        for rung in doc.rungs.iter().rev().skip(1) {
            line(format!("{} --> {phase}", rung.phase));
        }
    }
    for rung in &doc.rungs {
        if !rung.effects.is_empty() {
            line(format!("note left of {}", rung.phase));
            line(format!("  {}", quiet(&rung.effects.join(", "))));
            line("end note".to_owned());
        }
    }
    out
}

/// Text without the signs that mean something to Mermaid.
fn quiet(text: &str) -> String {
    text.replace([':', ';'], ",").replace('<', "&lt;").replace('>', "&gt;")
}

/// As a graph of Graphviz.
pub fn dot(doc: &LadderDoc) -> String {
    let mut out = format!("digraph {} {{\n", quoted(doc.kind));
    let mut line = |text: String| {
        let _ = writeln!(out, "  {text}");
    };
    line("rankdir=TB;".to_owned());
    line("node [shape=box, style=rounded, fontname=\"sans-serif\"];".to_owned());
    line("edge [fontname=\"sans-serif\", fontsize=10];".to_owned());
    for rung in &doc.rungs {
        let mut label = vec![rung.phase.to_owned()];
        if !rung.effects.is_empty() {
            label.push(rung.effects.join(", "));
        }
        if !rung.gates.is_empty() {
            label.push(format!("gates: {}", rung.gates.join(", ")));
        }
        line(format!(
            "{} [label={}];",
            quoted(rung.phase),
            quoted(&wrapped(&label.join("\n"), 48))
        ));
    }
    for pair in doc.rungs.windows(2) {
        if let [from, to] = pair {
            let label = quoted(&wrapped(from.leaves_when, 48));
            line(format!("{} -> {} [label={label}];", quoted(from.phase), quoted(to.phase)));
        }
    }
    for (phase, moves) in &doc.aside {
        let label = quoted(&wrapped(&format!("{phase}\n{moves}"), 48));
        line(format!("{} [label={label}, style=\"rounded,dashed\"];", quoted(phase)));
        for rung in doc.rungs.iter().rev().skip(1) {
            line(format!("{} -> {} [style=dashed];", quoted(rung.phase), quoted(phase)));
        }
    }
    if let (Some(last), Some(first)) = (doc.rungs.last(), doc.rungs.first()) {
        let label = quoted("back at once to the first rung\nthat no longer holds");
        line(format!(
            "{} -> {} [style=dotted, constraint=false, label={label}];",
            quoted(last.phase),
            quoted(first.phase)
        ));
    }
    out.push_str("}\n");
    out
}

fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{text}\"")
}

/// Text in lines of at most this many columns, where words allow it.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let longer = line.chars().count() + 1 + word.chars().count();
            if !line.is_empty() && longer > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}
