//! A ladder as SVG. A ladder is a column, so no layout engine is needed: each rung is a box, what
//! ends it stands on the arrow to the next, reasons and conditions stand beside and below.

use std::fmt::Write as _;

use phased::ladder::{LadderDoc, RungDoc};

use super::wrapped;

const WIDTH: usize = 980;
const LEFT: usize = 20;
const BOX: usize = 420;
const BESIDE: usize = LEFT + BOX + 40;
const LINE: usize = 16;
const PADDING: usize = 10;
/// Columns of text in a box, and beside it.
const COLUMNS: (usize, usize) = (58, 66);

/// As SVG.
pub fn svg(doc: &LadderDoc) -> String {
    let mut canvas = Canvas { out: String::new(), y: 20 };
    canvas.title(doc.kind);
    for (index, rung) in doc.rungs.iter().enumerate() {
        canvas.rung(rung);
        if index + 1 < doc.rungs.len() {
            canvas.arrow(rung.leaves_when);
        }
    }
    canvas.y += 20;
    for (phase, moves) in &doc.aside {
        canvas.text(LEFT, &format!("{phase} (aside)"), "h");
        canvas.lines(LEFT, &wrapped(moves, 120), "t");
    }
    canvas.y += 10;
    canvas.text(LEFT, "Conditions", "h");
    for (kind, meaning) in &doc.conditions {
        canvas.lines(LEFT, &wrapped(&format!("{kind}: {meaning}"), 120), "t");
    }
    let height = canvas.y + 10;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<title>Phases of {}</title>\n{STYLE}{}</svg>\n",
        escaped(doc.kind),
        canvas.out
    )
}

const STYLE: &str = "<style>
  rect { fill: #f4f7fb; stroke: #35506b; rx: 6; }
  path { stroke: #35506b; fill: none; marker-end: url(#tip); }
  text { font-family: sans-serif; fill: #1c2733; }
  .h { font-size: 14px; font-weight: bold; }
  .t { font-size: 12px; }
  .d { font-size: 11px; fill: #5a6b7b; }
</style>
<rect width=\"100%\" height=\"100%\" style=\"fill:#ffffff;stroke:none;rx:0\"/>
<defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"6\" refY=\"3\" orient=\"auto\">
  <polygon points=\"0 0, 7 3, 0 6\" fill=\"#35506b\"/></marker></defs>
";

struct Canvas {
    out: String,
    y: usize,
}

impl Canvas {
    fn title(&mut self, kind: &str) {
        self.text(LEFT, kind, "h");
        self.y += 6;
    }

    fn text(&mut self, x: usize, text: &str, class: &str) {
        self.y += LINE;
        let y = self.y;
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.out,
            "<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{}</text>",
            escaped(text)
        );
    }

    fn lines(&mut self, x: usize, text: &str, class: &str) {
        for line in text.lines() {
            self.text(x, line, class);
        }
    }

    fn rung(&mut self, rung: &RungDoc) {
        let mut inside = Vec::new();
        inside.extend(rung.effects.iter().map(|effect| format!("+ {effect}")));
        if !rung.gates.is_empty() {
            inside.push(format!("gates: {}", rung.gates.join(", ")));
        }
        let inside = wrapped(&inside.join("\n"), COLUMNS.0);
        let reasons: Vec<&str> = rung.reasons.iter().map(|reason| reason.name).collect();
        let beside = wrapped(&reasons.join(", "), COLUMNS.1);
        let top = self.y;
        self.y = top + PADDING / 2;
        self.text(LEFT + PADDING, rung.phase, "h");
        self.lines(LEFT + PADDING, &inside, "t");
        let bottom = self.y;
        self.y = top + PADDING / 2;
        self.lines(BESIDE, &beside, "d");
        self.y = self.y.max(bottom) + PADDING;
        let height = self.y - top;
        let boxed =
            format!("<rect x=\"{LEFT}\" y=\"{top}\" width=\"{BOX}\" height=\"{height}\"/>\n");
        // Below the text, so that it does not cover it.
        self.out.insert_str(self.place_of(top), &boxed);
    }

    /// Where the text that begins at this height stands.
    fn place_of(&self, top: usize) -> usize {
        let first = format!("y=\"{}\" class=\"h\"", top + PADDING / 2 + LINE);
        let found = self.out.rfind(&first).and_then(|at| self.out[..at].rfind("<text"));
        found.unwrap_or(self.out.len())
    }

    fn arrow(&mut self, words: &str) {
        let top = self.y;
        self.y += 2;
        self.lines(LEFT + 50, &wrapped(words, 110), "d");
        self.y += 14;
        let (x, bottom) = (LEFT + 30, self.y - 3);
        let _ = writeln!(self.out, "<path d=\"M {x} {top} L {x} {bottom}\"/>");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
