//! The command lines of the documentation can be typed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};

use super::{Cli, DOCUMENTS};
use crate::manual;

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(super::CHECKOUT)
}

fn documents() -> Vec<String> {
    let mut all = Vec::new();
    for place in DOCUMENTS {
        match fs::read_dir(checkout().join(place)) {
            Ok(pages) => {
                let names = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
                let pages = names.filter(|name| name.ends_with(".md"));
                all.extend(pages.map(|name| format!("{place}/{name}")));
            }
            Err(_) => all.push(place.to_owned()),
        }
    }
    all
}

fn read(document: &str) -> String {
    fs::read_to_string(checkout().join(document)).unwrap_or_else(|e| panic!("{document}: {e}"))
}

/// The lines of the fenced blocks.
fn code_lines(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside {
            lines.push(line.trim().to_owned());
        }
    }
    lines
}

/// The words of a command line of the program, if it is one; what a shell would put in counts as a
/// number.
fn onbeat_words(line: &str) -> Option<Vec<String>> {
    let line = line.split(" #").next()?.trim();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    let program = Cli::command().get_name().to_owned();
    if line.split(' ').next() != Some(&program) {
        return None;
    }
    let mut line = line.to_owned();
    while let Some(from) = line.find("$(") {
        let to = line[from..].find(')').map(|to| from + to)?;
        line.replace_range(from..=to, "1");
    }
    Some(line.split_whitespace().map(str::to_owned).collect())
}

fn assert_parses(place: &str, words: &[String]) {
    if let Err(error) = Cli::try_parse_from(words) {
        panic!("{place}: {}: {error}", words.join(" "));
    }
}

#[test]
fn every_command_line_in_the_documents_parses() {
    let mut found = 0;
    for document in documents() {
        for line in code_lines(&read(&document)) {
            if let Some(words) = onbeat_words(&line) {
                assert_parses(&document, &words);
                found += 1;
            }
        }
    }
    assert!(found >= 10, "only {found} command lines found");
}

#[test]
fn every_example_in_the_man_pages_parses() {
    let mut command = Cli::command();
    command.build();
    let pages = command
        .get_subcommands()
        .map(|it| format!("{}-{}", command.get_name(), it.get_name()))
        .chain([command.get_name().to_owned()]);
    for page in pages {
        for section in manual::sections(&page) {
            if section.title == "EXAMPLES" {
                for (line, _) in section.entries {
                    assert_parses(&page, &onbeat_words(line).expect(line));
                }
            }
        }
    }
}

/// Those of the command, and of all commands under it.
fn add_flags(command: &clap::Command, flags: &mut BTreeSet<String>) {
    let arguments = command.get_arguments();
    flags.extend(arguments.filter_map(|argument| Some(format!("--{}", argument.get_long()?))));
    for command in command.get_subcommands() {
        add_flags(command, flags);
    }
}

#[test]
fn every_flag_that_the_documents_name_exists() {
    let mut command = Cli::command();
    command.build();
    let mut flags = BTreeSet::new();
    add_flags(&command, &mut flags);
    for document in documents() {
        let text = read(&document);
        for code in text.split('`').skip(1).step_by(2) {
            if code.starts_with("--") {
                let flag = code.split([' ', '=']).next().unwrap_or(code);
                assert!(flags.contains(flag), "{document}: {flag}");
            }
        }
    }
}

#[test]
fn every_file_that_the_documents_link_to_exists() {
    for document in documents() {
        let path = checkout().join(&document);
        let folder = path.parent().unwrap();
        for link in read(&document).split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                assert!(folder.join(target).exists(), "{document}: {target}");
            }
        }
    }
}
