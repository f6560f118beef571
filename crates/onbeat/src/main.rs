//! The command line of onbeat: what each command is, and how it ends.
//!
//! Results go to standard output, messages to standard error. A reader that goes away (a closed
//! pipe) ends a command quietly.

mod analysis;
mod child;
mod cli;
mod commands;
mod config;
mod guard;
mod history;
mod live_view;
mod manual;
mod output;
mod own_time;
mod page;
mod progress;
mod replay;
mod run_table;
mod service;
mod signals;
mod start_tracer;
mod table;
mod watch_table;

use std::io;
use std::process::ExitCode;

use cli::{Cli, Command};

/// A command of onbeat failed: said why.
const FAILURE: u8 = 1;
/// onbeat failed before or beside the program it was to run, whose own statuses must stay apart:
/// as `env` and `timeout` have it.
const FAILURE_BESIDE_PROGRAM: u8 = 125;

fn main() -> ExitCode {
    let cli = Cli::of_command_line();
    let result = match &cli.command {
        Command::Run(args) => commands::run::run(args),
        Command::Attach(args) => commands::attach::run(args),
        Command::Top(args) => commands::top::run(args),
        Command::Daemon(args) => commands::daemon::run(args),
        Command::Analyze(args) => commands::analyze::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Record(args) => commands::record::run(args),
        Command::Reserve(args) => commands::reserve::run(args),
        Command::Restore(args) => commands::restore::run(args),
        Command::Plan(args) => commands::plan::run(args),
        Command::Scheduler(args) => commands::scheduler::run(args),
        Command::Replay(args) => commands::replay::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Sim(args) => commands::sim::run(args),
        Command::Watch(args) => commands::watch::run(args),
        Command::Mark(args) => commands::mark::run(args),
        Command::Generate(args) => commands::generate::run(args),
    };
    result.unwrap_or_else(|error| {
        if is_closed_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        eprintln!("onbeat: {}", message(&error));
        ExitCode::from(match cli.command {
            Command::Run(_) | Command::Reserve(_) | Command::Watch(_) => FAILURE_BESIDE_PROGRAM,
            Command::Top(args) if !args.command.is_empty() => FAILURE_BESIDE_PROGRAM,
            _ => FAILURE,
        })
    })
}

/// The error and its causes, without those that the messages before them tell already.
fn message(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |told, cause| {
        let cause = cause.to_string();
        if told.is_empty() {
            cause
        } else if told.contains(&cause) {
            told
        } else {
            format!("{told}: {cause}")
        }
    })
}

/// The reader of our output has had enough: no failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn no_cause_is_told_twice() {
        let error = io::Error::other("the disk is full");
        let told: anyhow::Result<()> =
            Err(anyhow::Error::from(error).context("cannot write x: the disk is full"))
                .context("recording ended");
        assert_eq!(
            message(&told.unwrap_err()),
            "recording ended: cannot write x: the disk is full"
        );
    }

    #[test]
    fn a_closed_pipe_is_known_behind_any_context() {
        let closed = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_closed_pipe(&closed.context("printing")));
        assert!(!is_closed_pipe(&anyhow::anyhow!("broken pipe")));
    }
}
