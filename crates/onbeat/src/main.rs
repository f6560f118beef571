//! The command line of onbeat: what each command is, and how it ends.

mod analysis;
mod cli;
mod commands;
mod config;
mod history;
mod live_view;
mod manual;
mod own_time;
mod page;
mod replay;
mod run_table;
mod service;
mod start_tracer;
mod watch_table;

use std::process::ExitCode;

use onbeat_command::ending::{self, FAILURE, FAILURE_BESIDE_PROGRAM};

use cli::{Cli, Command};

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
        Command::Replay(args) => commands::replay::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Sim(args) => commands::lab::run("sim", args),
        Command::Plan(args) => commands::lab::run("plan", args),
        Command::Scheduler(args) => commands::lab::run("scheduler", args),
        Command::Watch(args) => commands::watch::run(args),
        Command::Mark(args) => commands::mark::run(args),
        Command::Generate(args) => commands::generate::run(args),
    };
    let failure = match &cli.command {
        Command::Run(_) | Command::Reserve(_) | Command::Watch(_) => FAILURE_BESIDE_PROGRAM,
        Command::Top(args) if !args.command.is_empty() => FAILURE_BESIDE_PROGRAM,
        _ => FAILURE,
    };
    ending::of(result, "onbeat", failure)
}
