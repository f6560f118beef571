//! Man pages and completions, made from the one definition of the flags in `cli`.

mod configuration;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::{Cli, GenerateArgs, Generated};
use crate::manual;

/// Writes them.
pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<ExitCode> {
    let directory = &args.directory;
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the folder {}", directory.display()))?;
    match args.what {
        Generated::Man => man_pages(directory),
        Generated::Completions => completions(directory),
    }
    .with_context(|| format!("cannot write to {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn completions(directory: &Path) -> io::Result<()> {
    for &shell in Shell::value_variants() {
        clap_complete::generate_to(shell, &mut Cli::command(), "onbeat", directory)?;
    }
    Ok(())
}

/// `onbeat.1`, `onbeat-COMMAND.1` for each command, and `onbeat.toml.5`.
fn man_pages(directory: &Path) -> io::Result<()> {
    // Pages name commands and flags as `onbeat run`, with all that clap adds by itself.
    let mut onbeat = Cli::command().disable_help_subcommand(true);
    onbeat.build();
    write_page(directory, "onbeat", onbeat.clone())?;
    for command in onbeat.get_subcommands() {
        let name = format!("onbeat-{}", command.get_name());
        write_page(directory, &name, command.clone().display_name(name.clone()))?;
    }
    configuration::page().to_writer(&mut fs::File::create(directory.join("onbeat.toml.5"))?)
}

fn write_page(directory: &Path, name: &str, mut command: clap::Command) -> io::Result<()> {
    let usage = command.render_usage().to_string();
    let mut page = Vec::new();
    let man = Man::new(command).title(name.to_uppercase());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(&usage, &mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if name == "onbeat" {
        man.render_subcommands_section(&mut page)?;
    }
    manual_sections(name, &mut page)?;
    fs::File::create(directory.join(format!("{name}.1")))?.write_all(&page)
}

/// As `--help` has it: the generator's own leaves out the `--` before a program.
fn synopsis(usage: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let usage = usage.trim_start_matches("Usage:").trim();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold(usage)]);
    roff.to_writer(page)
}

/// The parts that the flags' definitions do not tell.
fn manual_sections(page_name: &str, page: &mut Vec<u8>) -> io::Result<()> {
    for section in manual::sections(page_name) {
        let mut roff = Roff::new();
        roff.control("SH", [section.title]);
        for (term, text) in section.entries {
            roff.control("TP", []);
            roff.text([bold(*term)]);
            roff.text([roman(*text)]);
        }
        roff.to_writer(page)?;
    }
    Ok(())
}
