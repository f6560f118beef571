//! Experiments: the figures of the papers, and those of the requirements.
//!
//! Each prints Markdown tables and draws plots; each cleans up after itself, on Ctrl-C too. Those
//! on a live machine or in a guest start real programs (mplayer, rt-app, stress-ng) and the
//! `onbeat` binary as a user would. Those that compute, from formulas or recordings, link against
//! onbeat's own crates, as what they compute with is what is judged.

mod adaptive_reservations;
mod av_desync;
mod bandwidth;
mod clock;
mod demands;
mod frequency_switch;
mod grace_os;
mod lfspp;
mod lock_time;
mod log;
mod machine;
mod mdn;
mod measure;
mod media;
mod notification_latency;
mod period_accuracy;
mod period_detection;
mod player_deadlines;
mod plot;
mod predictors;
mod rate_changes;
mod rate_monotonic;
mod recorded;
mod reservations_vs_rr;
mod results;
mod rt_app;
mod server_period;
mod several_cpus;
mod statistics;
mod steps;
mod three_rt_apps;
mod tracking_cost;
mod vm;
mod wakeups_vs_syscalls;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use machine::Machine;

/// Experiments, with the papers' figures beside ours.
///
/// Those on a live machine need root, the release binary of onbeat (beside this one, or where
/// ONBEAT says), and a machine that has nothing else to do. Those that compute give the same at
/// every run; those in virtual time do for one image of the guest.
#[derive(Debug, Parser)]
#[command(name = "onbeat-experiments", version, max_term_width = 100)]
struct Cli {
    /// Where plots and what the programs wrote go
    #[arg(
        long,
        value_name = "DIR",
        default_value = "papers/experiments/out",
        global = true
    )]
    out: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The experiments by name
    List,
    /// Take the tables that are not of this commit's code, and write them into their READMEs
    ///
    /// Each is kept in papers/experiments/results.json as soon as it is taken: ended and started
    /// again, it goes on.
    Measure(measure::Args),
    /// No experiment: the program that tracking-cost tracks
    #[command(hide = true)]
    Beats(tracking_cost::beats::Args),
    /// No experiment: a program under LFS++ as written, on this kernel
    #[command(hide = true)]
    Lfspp(lfspp::Args),
    /// In the guest of server-period
    #[command(hide = true)]
    Served(server_period::GuestArgs),
    /// Experiments, one after the other; no README is changed
    #[command(external_subcommand)]
    Experiments(Vec<String>),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if machine::was_interrupted(&error) => {
            eprintln!("interrupted: everything started has been ended");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("onbeat-experiments: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::List => steps::list(),
        Command::Beats(args) => return tracking_cost::beats::run(&args),
        Command::Lfspp(args) => return lfspp::run(&args),
        Command::Served(args) => return server_period::in_guest(&args),
        Command::Measure(args) => return measure::run(&Machine::new(cli.out)?, &args),
        Command::Experiments(names) => {
            let steps: Vec<_> = names.iter().map(|name| steps::named(name)).collect();
            let machine = Machine::new(cli.out)?;
            for step in steps {
                step?.run(&machine)?;
            }
        }
    }
    Ok(())
}
