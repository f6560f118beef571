//! The command line of onbeat: what each command is, and how it ends.
//!
//! Results go to standard output, messages to standard error. A reader that goes away (a closed
//! pipe) ends a command quietly.

mod cli;
mod commands;
mod manual;
mod table;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};

/// A command of onbeat failed: said why.
const FAILURE: u8 = 1;
/// onbeat failed before or beside the program it was to run, whose own statuses must stay apart:
/// as `env` and `timeout` have it.
const FAILURE_BESIDE_PROGRAM: u8 = 125;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Generate(args) => commands::generate::run(args),
        _ => Err(anyhow::anyhow!("this command is not built yet")),
    };
    result.unwrap_or_else(|error| {
        if is_closed_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        eprintln!("onbeat: {error:#}");
        ExitCode::from(match cli.command {
            Command::Run(_) | Command::Reserve(_) => FAILURE_BESIDE_PROGRAM,
            _ => FAILURE,
        })
    })
}

/// Whoever read our output has had enough: no failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
