//! Where answers go: a page on a terminal or into a pipe, or data for programs.

use std::io::{IsTerminal, Write as _};

use anyhow::Context;
use foresight::mistake::Mistake;
use foresight::page::{Page, Style};
use serde::Serialize;

use crate::args::foresight::Output;

/// Whether standard output takes colour.
pub fn colour() -> bool {
    std::io::stdout().is_terminal() && wanted()
}

/// Whether the environment has nothing against it.
fn wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var("TERM").map_or(true, |term| term != "dumb")
}

/// Prints a page. A reader that went away is no failure.
pub fn page(page: &Page) {
    text(&page.text(colour()));
}

/// Tells a mistake on standard error, with the next step below.
pub fn mistake(mistake: &Mistake) {
    let mut page = Page::new(true);
    page.item(0, (Style::Bad, "steadfast:"), &[(Style::Plain, &mistake.sentence)]);
    if !mistake.next.is_empty() {
        page.item(2, (Style::Strong, "->"), &[(Style::Plain, &mistake.next)]);
    }
    let colour = std::io::stderr().is_terminal() && wanted();
    let _ = std::io::stderr().lock().write_all(page.text(colour).as_bytes());
}

/// Prints text as it is.
pub fn text(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Prints data in the form that was asked for.
///
/// # Errors
/// When it cannot be serialised.
pub fn data(output: Output, data: &impl Serialize) -> anyhow::Result<()> {
    let written = match output {
        Output::Json | Output::Text => {
            serde_json::to_string_pretty(data).context("the answer is not JSON")? + "\n"
        }
        Output::Yaml => yaml(data)?,
    };
    text(&written);
    Ok(())
}

/// As YAML, with a line break at the end.
///
/// # Errors
/// When it cannot be serialised.
pub fn yaml(data: &impl Serialize) -> anyhow::Result<String> {
    let mut text = serde_saphyr::to_string(data).context("the answer is not YAML")?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
