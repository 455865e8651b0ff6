//! `steadfast`: parses the command line, dispatches, and turns the outcome into an exit code.
//!
//! The same binary is a plugin of kubectl when it is called `kubectl-steadfast`, and its completion
//! when it is called `kubectl_complete-steadfast`. Must not decide anything else.

use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use foresight::mistake::Mistake;
use steadfast::args::{Cli, Command};
use steadfast::{
    complete, demo as show, explain, graph, logging, manifests, output, plan, render, run, usage,
};

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let called = words.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    if called == complete::PLUGIN_COMPLETION {
        return complete::plugin(words.get(1..).unwrap_or_default());
    }
    let name = if called == complete::PLUGIN { "kubectl steadfast" } else { "steadfast" };
    let cli = match parsed(name) {
        Ok(cli) => cli,
        Err(error) => {
            let words = words.get(1..).unwrap_or_default();
            let planning = usage::command(words) == Some("plan");
            match usage::mistake(&error, name, words) {
                Some(mistake) => output::mistake(&mistake),
                None => drop(error.print()),
            }
            // 2 would say that there are changes.
            return match error.exit_code() {
                0 => ExitCode::SUCCESS,
                _ if planning => ExitCode::FAILURE,
                code => ExitCode::from(u8::try_from(code).unwrap_or(1)),
            };
        }
    };
    // The demo shows the moves itself, and the commands that look print an answer: log lines are for
    // what goes wrong.
    let filter = cli.log.as_deref().unwrap_or(match cli.command {
        Command::Run(_) => "info",
        Command::Demo(_) => "warn",
        // What the client meets is told as a mistake.
        _ => "warn,kube_client=off",
    });
    logging::start(filter, cli.log_format, matches!(cli.command, Command::Demo(_)));
    // One provider for the process, chosen before the first handshake.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match dispatch(&cli.command) {
        Ok(code) => code,
        Err(error) => {
            match error.downcast_ref::<Mistake>() {
                Some(mistake) => output::mistake(mistake),
                None => eprintln!("steadfast: {error:#}"),
            }
            ExitCode::FAILURE
        }
    }
}

fn parsed(name: &'static str) -> Result<Cli, clap::Error> {
    let matches = Cli::command().bin_name(name).try_get_matches()?;
    Cli::from_arg_matches(&matches)
}

fn dispatch(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(options) => run::run(options),
        Command::Demo(options) => show::demo(options),
        Command::Plan(options) => plan::plan(options),
        Command::Explain(options) => explain::explain(options),
        Command::Render(options) => render::render(options),
        Command::Graph(options) => graph::graph(options),
        Command::Completions(options) => complete::script(options),
        Command::Crds => manifests::print_crds(),
        Command::Manifests(options) => manifests::print_all(options),
        Command::Docs => manifests::print_docs(),
    }
}
