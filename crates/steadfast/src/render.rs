//! `steadfast render`: the children of resources as YAML, without a cluster, the same every time.

use std::process::ExitCode;

use foresight::rendering::{self, Rendered};

use crate::args::foresight::Render;
use crate::link::Link;
use crate::{manifest, output, plan};

/// What stands above everything.
const HEADER: &str = "\
# The children as the operator declares them first. What a server gives is not known: the uid of
# each resource is shown as 00000000-0000-0000-0000-000000000000, and digests that contain it differ
# from those in a cluster. Not to be applied.
";

/// Renders.
///
/// # Errors
/// When a manifest cannot be read, or is refused.
pub fn render(options: &Render) -> anyhow::Result<ExitCode> {
    let documents = manifest::read(&options.manifests)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let text = runtime.block_on(async {
        let link = Link::thought(Some(&options.namespace))?;
        let (tasks, _) = plan::tasks(documents, &link, None)?;
        let mut text = HEADER.to_owned();
        for task in &tasks {
            let (course, _) = plan::creation(&link, task, &options.horizon.settings()).await?;
            let children = rendering::children(&course.stage);
            anyhow::ensure!(
                !children.is_empty(),
                "{}: no child would be made; `steadfast plan --offline` says why",
                foresight::words::named(&course.stage.resource())
            );
            for child in children {
                text.push_str(&document(&child)?);
            }
        }
        anyhow::Ok(text)
    })?;
    output::text(&text);
    Ok(ExitCode::SUCCESS)
}

fn document(child: &Rendered) -> anyhow::Result<String> {
    let mut text = format!("---\n# {}\n", child.name);
    if !child.generated.is_empty() {
        let keys = child.generated.join(", ");
        text.push_str(&format!("# made up by the operator, and never shown: {keys}\n"));
    }
    text.push_str(&output::yaml(&child.object)?);
    Ok(text)
}
