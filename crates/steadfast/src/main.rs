//! `steadfast`: parses the command line, dispatches, and turns the outcome into an exit code.
//!
//! Must not decide anything else.

use std::process::ExitCode;

use clap::Parser;
use steadfast::args::{Cli, Command};
use steadfast::{demo as show, logging, manifests, run};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let demo = matches!(cli.command, Command::Demo(_));
    // The demo shows the moves itself, in lines that are made to be read.
    let filter = cli.log.as_deref().unwrap_or(if demo { "warn" } else { "info" });
    logging::start(filter, cli.log_format, demo);
    // One provider for the process, chosen before the first handshake.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcome = match cli.command {
        Command::Run(options) => run::run(&options),
        Command::Demo(options) => show::demo(&options),
        Command::Crds => manifests::print_crds(),
        Command::Manifests(options) => manifests::print_all(&options),
        Command::Docs => manifests::print_docs(),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("steadfast: {error:#}");
            ExitCode::FAILURE
        }
    }
}
