//! Man pages and completions, made from the one definition of the flags in `cli`.

mod configuration;

use std::fs::{self, File};
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use onbeat_command::pages;

use crate::cli::{Cli, GenerateArgs, Generated};
use crate::manual;

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let directory = &args.directory;
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the folder {}", directory.display()))?;
    match args.what {
        Generated::Man => pages::manual(Cli::command(), manual::sections, directory)
            .and_then(|()| File::create(directory.join("onbeat.toml.5")))
            .and_then(|mut file| configuration::page().to_writer(&mut file)),
        Generated::Completions => pages::completions(Cli::command(), directory),
    }
    .with_context(|| format!("cannot write to {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
