//! `steadfast`: parses the command line, dispatches, and turns the outcome into an exit code.
//!
//! Must not decide anything else.

use std::process::ExitCode;

use clap::Parser;
use steadfast::args::{Cli, Command};
use steadfast::{demo, logging, manifests, run};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let quiet = matches!(cli.command, Command::Demo(_));
    logging::start(&cli.log, cli.log_format, quiet);
    // One provider for the process, chosen before the first handshake.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcome = match cli.command {
        Command::Run(options) => run::run(&options),
        Command::Demo(options) => demo::demo(&options),
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
