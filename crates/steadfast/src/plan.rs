//! `steadfast plan`: what would happen if manifests were applied.
//!
//! Reads, sends dry runs, and shows what `foresight` makes of it. Must not write, and must not decide
//! what follows from an edit.

mod edit;
mod foresee;
mod look;
mod task;

use std::process::ExitCode;

use foresight::forecast::Forecast;
use foresight::page::summary::Summary;
use foresight::page::{self, Page};
use futures::StreamExt;
use serde::Serialize;

use crate::args::foresight::{Output, Plan};
use crate::link::{Link, OFFLINE};
use crate::manifest::Document;
use crate::{manifest, output};

pub use edit::Manner;
pub use foresee::document;
pub use task::{Task, tasks};

pub(crate) use foresee::creation;
pub(crate) use look::{answer, unread};

/// Resources at the same time.
const AT_ONCE: usize = 8;
/// From this many resources on, those that do not change are only counted.
const MANY: usize = 12;

/// What is asked for, as programs read it.
#[derive(Serialize)]
struct Answers<'a> {
    forecasts: &'a [Forecast],
    failures: Vec<String>,
    summary: String,
}

/// Plans; the exit code says what was found.
///
/// # Errors
/// When something cannot be read, or no cluster answers.
pub fn plan(options: &Plan) -> anyhow::Result<ExitCode> {
    let documents = manifest::read(&options.manifests)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let summary = runtime.block_on(async {
        let link = if options.offline {
            Link::thought(options.access.namespace.as_deref())?
        } else {
            Link::real(&options.access, OFFLINE).await?
        };
        let mut print = |page: &Page| {
            output::text("\n");
            output::page(page);
        };
        show(&link, documents, options, &mut print).await
    })?;
    Ok(ExitCode::from(summary.exit_code()))
}

/// Foresees what the documents lead to, and prints each page as soon as it is known, the summary last.
///
/// # Errors
/// When a document cannot be meant as it stands, or something cannot be read.
pub async fn show(
    link: &Link,
    documents: Vec<Document>,
    options: &Plan,
    print: &mut dyn FnMut(&Page),
) -> anyhow::Result<Summary> {
    let manager = options.field_manager.as_deref();
    let manner = &Manner::new(options.server_side, options.force_conflicts, manager);
    let (tasks, others) = tasks(documents, link, options.access.namespace.as_deref())?;
    let quiet = tasks.len() > MANY && !options.all;
    let settings = options.horizon.settings();
    let stores = look::gather(link, &tasks).await?;
    let mut summary = Summary { others, ..Summary::default() };
    let mut forecasts = Vec::new();
    let mut failures = Vec::new();
    let looks = futures::stream::iter(&tasks)
        .map(|task| foresee::foresee(link, task, &stores, (manner, &settings)))
        .buffered(AT_ONCE);
    let mut looks = std::pin::pin!(looks);
    while let Some(look) = looks.next().await {
        match look {
            Ok(forecast) => {
                summary.add(&forecast);
                let unchanged = forecast.is_quiet();
                if options.output != Output::Text {
                    forecasts.push(forecast);
                } else if !(quiet && unchanged) {
                    let mut page = Page::new(options.all);
                    page::forecast::add(&mut page, &forecast);
                    print(&page);
                }
            }
            Err(failure) => {
                summary.failed += 1;
                output::mistake(&failure);
                failures.push(failure.to_string());
            }
        }
    }
    if options.output == Output::Text {
        let mut page = Page::new(false);
        summary.show(&mut page);
        print(&page);
    } else {
        let answers = Answers { forecasts: &forecasts, failures, summary: summary.sentence() };
        output::data(options.output, &answers)?;
    }
    Ok(summary)
}
