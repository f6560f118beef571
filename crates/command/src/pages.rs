//! Man pages and completions, made from a definition of commands.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::{Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

pub type Entries = &'static [(&'static str, &'static str)];

pub struct Section {
    pub title: &'static str,
    pub entries: Entries,
}

pub fn completions(mut program: Command, directory: &Path) -> io::Result<()> {
    let name = program.get_name().to_owned();
    for &shell in Shell::value_variants() {
        clap_complete::generate_to(shell, &mut program, &name, directory)?;
    }
    Ok(())
}

/// `PROGRAM.1`, and `PROGRAM-COMMAND.1` for each command that is not hidden. `sections` gives what
/// the flags' definitions do not tell, for a page's name.
pub fn manual(
    program: Command,
    sections: impl Fn(&str) -> Vec<Section>,
    directory: &Path,
) -> io::Result<()> {
    // Pages name commands and flags as `onbeat run`, with all that clap adds by itself.
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let own = program.get_name().to_owned();
    write_page(directory, &own, program.clone(), &sections(&own))?;
    for command in program.get_subcommands().filter(|it| !it.is_hide_set()) {
        let name = format!("{own}-{}", command.get_name());
        let command = command.clone().display_name(name.clone());
        write_page(directory, &name, command, &sections(&name))?;
    }
    Ok(())
}

fn write_page(
    directory: &Path,
    name: &str,
    mut command: Command,
    sections: &[Section],
) -> io::Result<()> {
    let usage = command.render_usage().to_string();
    let has_commands = command.has_subcommands();
    let mut page = Vec::new();
    let man = Man::new(command).title(name.to_uppercase());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(&usage, &mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_commands {
        man.render_subcommands_section(&mut page)?;
    }
    for section in sections {
        let mut roff = Roff::new();
        roff.control("SH", [section.title]);
        for (term, text) in section.entries {
            roff.control("TP", []);
            roff.text([bold(*term)]);
            roff.text([roman(*text)]);
        }
        roff.to_writer(&mut page)?;
    }
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

pub const EXIT_STATUS: Entries = &[
    ("0", "Done."),
    (
        "1",
        "It failed; a message on standard error says what happened and what to do.",
    ),
    ("2", "The command line was wrong."),
];

/// Those of one that starts a program.
pub const CHILD_EXIT_STATUS: Entries = &[
    (
        "2",
        "The command line was wrong (or the program itself ended with 2).",
    ),
    (
        "125",
        "onbeat itself failed; a message on standard error says what happened and what to do.",
    ),
    ("126", "The program was found but cannot be executed."),
    ("127", "The program was not found."),
    ("128+N", "Signal N ended the program."),
    ("any other", "The program's own exit status."),
];
