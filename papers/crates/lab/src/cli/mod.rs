//! Every command and flag, defined once: help, man pages and completions are made from this.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

mod config;
#[cfg(test)]
#[path = "../../../../../crates/onbeat/src/cli/tests.rs"]
mod documented;
/// Pages, and folders of pages, whose command lines, flags and links are true; in the checkout.
#[cfg(test)]
const DOCUMENTS: [&str; 2] = ["papers/README.md", "papers/docs"];
#[cfg(test)]
const CHECKOUT: &str = "../../..";
mod plan;
mod scheduler;
mod seeds;
mod sim;

use crate::reserve::ReserveArgs;
pub(crate) use config::ConfigOption;
pub(crate) use plan::PlanArgs;
pub(crate) use scheduler::{Allowed, PlanOption, SchedulerArgs, SchedulerCommand, StartArgs};
pub(crate) use sim::{ComparisonOptions, SimArgs};

/// Simulates machines, plans reservations from recordings, and runs schedulers in the kernel.
///
/// What onbeat was built with: the policies of the papers that it is made after, on a simulated
/// machine and as schedulers of a live kernel.
#[derive(Debug, Parser)]
#[command(
    name = "onbeat-lab",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a machine and its tasks, from a file or a recording
    ///
    /// Runs in virtual time and needs no privilege. The same file and seed give the same figures.
    /// Several files and seeds run on all CPUs at once. With --from, prints the deadlines that the
    /// threads of a recording would have missed, and the energy, under other policies and on other
    /// machines.
    Sim(SimArgs),
    /// Plan reservations for the threads of recordings
    ///
    /// For each periodic thread, prints the smallest reservation under which its jobs would have
    /// missed no more deadlines than --misses allows, whether all fit this machine, and how to set
    /// them without onbeat. Needs no privilege.
    Plan(PlanArgs),
    /// Run one of onbeat's own schedulers in the kernel (sched_ext)
    ///
    /// The kernel returns to its own scheduler when onbeat-lab ends, even by a kill, and when the
    /// scheduler fails.
    Scheduler(SchedulerArgs),
    /// Start a program whose threads and children share a reservation, on several CPUs if need be
    ///
    /// The scheduler `reserve` (sched_ext) keeps it, as long as the program runs. Ends with the
    /// program's exit status. Needs root.
    Reserve(ReserveArgs),
    /// Write man pages or shell completions into a folder
    #[command(hide = true)]
    Generate { what: Generated, directory: PathBuf },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Generated {
    Man,
    Completions,
}
