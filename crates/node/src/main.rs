//! `onbeat-node`: see the library.

mod cli;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use onbeat_node::plugin::Plugin;
use onbeat_node::rules::Folder;
use onbeat_node::{EndingSignals, WaitEnd, session};

use cli::{Cli, Command};

/// The pause after a connection that ended, and the longest one after several that could not be
/// made. A runtime that starts is found within that time; each attempt costs a system call.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Some(Command::Generate { what, directory }) => cli::generate(*what, directory)
            .with_context(|| format!("cannot write to {}", directory.display())),
        None => run(&cli),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("onbeat-node: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let signals = EndingSignals::block().context("cannot listen for signals")?;
    let mut plugin = Plugin::new(Folder::new(cli.rules.clone()));
    let mut pause = FIRST_PAUSE;
    let mut told = String::new();
    while let Err(broken) = session::serve(&cli.socket, &cli.index, &mut plugin, &signals) {
        if plugin.is_synchronized() {
            pause = FIRST_PAUSE;
            told.clear();
        }
        let why = broken.to_string();
        if why != told {
            eprintln!("onbeat-node: {}: {why}; trying again", cli.socket.display());
            told = why;
        }
        let woken = signals.wait(None, Some(pause));
        if woken.context("cannot wait for signals")? == WaitEnd::ToEnd {
            break;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    plugin.end().context("cannot remove the rules")
}
