//! `onbeat reserve`: a program under a reservation set by hand.

use std::process::ExitCode;

use anyhow::Context;
use onbeat_act::{DeadlineActuator, DeadlineOptions, own, task};
use onbeat_model::{Actuator, Reservation};
use onbeat_schedulers::reserve::{self, GroupBudget, Reservations, Whom};

use super::served;
use crate::child::{Child, Gated, ProgramEnd};
use crate::cli::{ReserveArgs, Through};
use crate::guard;
use crate::signals::Signals;

/// Reserves, starts the program, and waits for its end.
pub(crate) fn run(args: &ReserveArgs) -> anyhow::Result<ExitCode> {
    if served::is_meant(&args.service)? {
        return served::reserve(args);
    }
    let signals = Signals::block().context("cannot listen for signals")?;
    match args.through {
        Through::Deadline => by_deadline(args, args.reservation()?, &signals),
        Through::Scx => by_group(args, args.budget()?, &signals),
    }
}

/// The program's first thread has it.
fn by_deadline(
    args: &ReserveArgs,
    reservation: Reservation,
    signals: &Signals,
) -> anyhow::Result<ExitCode> {
    let directory = args.state.path()?;
    let state_file = guard::state_file(&directory)?;
    let options = DeadlineOptions { hard: args.hard };
    let mut actuator = DeadlineActuator::new(state_file, options);

    let gated = Gated::fork(&args.command).context("cannot start a process")?;
    let task = task::identify(gated.pid()).context("the new process is gone")?;
    actuator
        .reserve(task, reservation)
        .with_context(|| format!("cannot reserve {reservation}"))?;
    let code = start_and_wait(gated, signals);
    actuator.ended(task);
    Ok(code)
}

/// The whole program has it.
fn by_group(
    args: &ReserveArgs,
    budget: GroupBudget,
    signals: &Signals,
) -> anyhow::Result<ExitCode> {
    let gated = Gated::fork(&args.command).context("cannot start a process")?;
    // The kernel takes its time to look through the scheduler, and hogs would make it long.
    if let Err(error) = own::go_first(own::LOWEST) {
        eprintln!("onbeat: cannot raise its own priority ({error}): the program may start late");
    }
    let mut running = reserve::start().context("--through scx")?;
    Reservations::default()
        .set(&mut running, Whom::Process(gated.pid()), budget)
        .with_context(|| format!("cannot reserve {budget}"))?;
    let code = start_and_wait(gated, signals);
    if let Some(outcome) = running.outcome() {
        eprintln!(
            "onbeat: the kernel ended the scheduler ({}): the program ran on without a reservation",
            outcome.reason
        );
    }
    Ok(code)
}

fn start_and_wait(gated: Gated, signals: &Signals) -> ExitCode {
    match gated.open() {
        Ok(mut child) => wait(&mut child, signals).code(),
        Err(failure) => failure.tell(),
    }
}

/// Waits for the program's end; signals to onbeat go on to it.
fn wait(child: &mut Child, signals: &Signals) -> ProgramEnd {
    loop {
        if let Some(status) = child.ended() {
            return status;
        }
        signals.wait();
        while let Some(signal) = signals.next() {
            if signal.number != libc::SIGCHLD && !signal.from_terminal {
                child.signal(signal.number);
            }
        }
    }
}
