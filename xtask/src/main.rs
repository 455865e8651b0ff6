//! The project's own commands: `cargo xtask check`, `test`, `tidy`, `edges`, `generate`, `cluster`.
//!
//! Only parses the command line and dispatches; each command is a module. Must not be needed to build
//! the product.

mod check;
mod cluster;
mod edges;
mod finding;
mod generate;
mod licences;
mod machine;
mod step;
mod tidy;
mod tool;
mod tree;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::generate::Build;

/// Build, check and test Steadfast.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything that needs neither a cluster nor the network; what a change must pass.
    Check,
    /// The check, then every test that needs programs of this machine.
    Test {
        /// Fail where a test would be skipped, as CI does.
        #[arg(long)]
        require_all: bool,
        /// Only the tests of the machine: the check was run before.
        #[arg(long)]
        skip_check: bool,
    },
    /// The rules of the house that a program can check: headers, sizes, names, links, leftovers.
    Tidy {
        /// Write today's oversize items to xtask/ratchet.txt.
        #[arg(long)]
        write_ratchet: bool,
    },
    /// Which crate may depend on which, and what the pure crates may reach.
    Edges {
        /// Also build every crate alone; slow.
        #[arg(long)]
        alone: bool,
    },
    /// Write the files that the binary prints: CRDs, install manifest, table of phases.
    Generate {
        /// Compare only, and fail on a difference.
        #[arg(long)]
        check: bool,
    },
    /// Compare the licences of all dependencies with deny.toml.
    Licences,
    /// A real control plane to try things on; without a node.
    Cluster(cluster::Arguments),
}

fn main() -> ExitCode {
    match dispatch(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<()> {
    let root = tree::root();
    match command {
        Command::Check => check::run(&root),
        Command::Test { require_all, skip_check } => machine::run(&root, require_all, skip_check),
        Command::Tidy { write_ratchet: true } => tidy::write_ratchet(&root),
        Command::Tidy { write_ratchet: false } => tidy::run(&root),
        Command::Edges { alone } => {
            edges::run(&root)?;
            if alone { edges::alone(&root, &edges::members(&root)?) } else { Ok(()) }
        }
        Command::Generate { check } => generate::run(&root, check, Build::Alone),
        Command::Cluster(arguments) => cluster::run(arguments),
        Command::Licences => {
            println!("{:?}", licences::run(&root)?);
            Ok(())
        }
    }
}
