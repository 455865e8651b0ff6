//! `steadfast graph`: the ladder of a kind as a drawing.

use std::process::ExitCode;

use foresight::graph;

use crate::args::foresight::{Drawing, Graph};
use crate::{kinds, output};

/// Draws.
///
/// # Errors
/// When Steadfast does not run the kind.
pub fn graph(options: &Graph) -> anyhow::Result<ExitCode> {
    let ladder = kinds::named(&options.kind)?.subject.ladder();
    output::text(&match options.output {
        Drawing::Mermaid => graph::mermaid(&ladder),
        Drawing::Dot => graph::dot(&ladder),
        Drawing::Svg => graph::svg(&ladder),
    });
    Ok(ExitCode::SUCCESS)
}
