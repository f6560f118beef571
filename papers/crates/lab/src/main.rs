//! The command line of onbeat-lab: what each command is, and how it ends.

mod cli;
mod compare;
mod manual;
mod plan;
mod progress;
mod reserve;
mod scheduler;
mod sim;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use onbeat_command::ending::{self, FAILURE, FAILURE_BESIDE_PROGRAM};
use onbeat_command::pages;

use cli::{Cli, Command, Generated};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Sim(args) => sim::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Scheduler(args) => scheduler::run(args),
        Command::Reserve(args) => reserve::run(args),
        Command::Generate { what, directory } => generate(*what, directory),
    };
    let failure = match cli.command {
        Command::Reserve(_) => FAILURE_BESIDE_PROGRAM,
        _ => FAILURE,
    };
    ending::of(result, "onbeat-lab", failure)
}

fn generate(what: Generated, directory: &Path) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(directory)
        .and_then(|()| match what {
            Generated::Man => pages::manual(Cli::command(), manual::sections, directory),
            Generated::Completions => pages::completions(Cli::command(), directory),
        })
        .with_context(|| format!("cannot write to {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
