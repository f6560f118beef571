//! `onbeat-lab reserve`: a program with all that it starts under one reservation, by the scheduler
//! `reserve`.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use onbeat_act::own;
use onbeat_command::child::Gated;
use onbeat_command::signals::Signals;
use onbeat_model::Span;
use onbeat_schedulers::reserve::{self, GroupBudget, Reservations, Whom};

#[derive(Debug, Args)]
pub(crate) struct ReserveArgs {
    /// CPU time in each period, such as 5ms; it may exceed the period, on several CPUs
    #[arg(long, value_name = "TIME")]
    runtime: Span,
    /// Time from one replenishment to the next, such as 20ms
    #[arg(long, value_name = "TIME")]
    period: Span,
    /// Time within which the runtime is given [default: the period]
    #[arg(long, value_name = "TIME")]
    deadline: Option<Span>,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &ReserveArgs) -> anyhow::Result<ExitCode> {
    let signals = Signals::block().context("cannot listen for signals")?;
    let deadline = args.deadline.unwrap_or(args.period);
    let budget = GroupBudget::new(args.runtime, deadline, args.period)?;
    let gated = Gated::fork(&args.command).context("cannot start a process")?;
    // The kernel takes its time to look through the scheduler, and hogs would make it long.
    if let Err(error) = own::go_first(own::LOWEST) {
        eprintln!(
            "onbeat-lab: cannot raise its own priority ({error}): the program may start late"
        );
    }
    let mut running = reserve::start().context("cannot start the scheduler reserve")?;
    Reservations::default()
        .set(&mut running, Whom::Process(gated.pid()), budget)
        .with_context(|| format!("cannot reserve {budget}"))?;
    let code = gated.run_to_end(&signals);
    if let Some(outcome) = running.outcome() {
        eprintln!(
            "onbeat-lab: the kernel ended the scheduler ({}): the program ran on without a reservation",
            outcome.reason
        );
    }
    Ok(code?)
}
