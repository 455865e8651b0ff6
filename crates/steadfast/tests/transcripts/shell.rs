//! A command line, as a person types it, and what it prints into a pipe.

use std::sync::Arc;

use clap::Parser;
use foresight::page::Page;
use serde_json::Value;
use steadfast::args::{Cli, Command};
use steadfast::embedded::SimClock;
use steadfast::explain::{self, Target};
use steadfast::link::Link;
use steadfast::manifest::Document;
use steadfast::plan;

use crate::support::Bench;

/// The transcript of a command; `manifest` is what stands in the file that it names.
pub(crate) async fn transcript(bench: &Bench, line: &str, manifest: Option<&Value>) -> String {
    let cli = Cli::try_parse_from(line.split(' ')).expect("the binary takes this line");
    let client = kube::Client::new(bench.world.cluster.client("person").service(), "default");
    let mut link = Link::to(client, "default");
    link.clock = Arc::new(SimClock(bench.world.clone()));
    let (output, code) = match &cli.command {
        Command::Plan(options) => {
            let source = options.manifests.files[0].display().to_string();
            let value = manifest.expect("a plan has a manifest").clone();
            let mut pages = Vec::new();
            let mut print = |page: &Page| pages.push(page.text(false));
            let documents = vec![Document { value, source }];
            let summary = plan::show(&link, documents, options, &mut print).await;
            (pages.join("\n"), summary.expect("there is a forecast").exit_code())
        }
        Command::Explain(options) => {
            let mut target = Target::of(options).expect("it means something");
            target.namespace.clone_from(&link.namespace);
            let told = explain::all(&link, &target, &options.settings()).await;
            let told = told.expect("there is an explanation");
            (explain::page_of(&told, options.all).text(false), 0)
        }
        other => unreachable!("no transcript of {other:?}"),
    };
    format!("$ {line}\n{output}$ echo $?\n{code}\n")
}
