//! `onbeat reserve`: a program under a reservation set by hand.

use std::process::ExitCode;

use anyhow::Context;
use onbeat_act::{DeadlineActuator, DeadlineOptions, task};
use onbeat_model::Actuator;

use super::served;
use crate::cli::ReserveArgs;
use onbeat_command::child::Gated;
use onbeat_command::guard;
use onbeat_command::signals::Signals;

pub(crate) fn run(args: &ReserveArgs) -> anyhow::Result<ExitCode> {
    if served::is_meant(&args.service)? {
        return served::reserve(args);
    }
    let signals = Signals::block().context("cannot listen for signals")?;
    let reservation = args.reservation()?;
    let directory = args.state.path()?;
    let state_file = guard::state_file(guard::THIS.as_ref(), &directory)?;
    let options = DeadlineOptions { hard: args.hard };
    let mut actuator = DeadlineActuator::new(state_file, options);

    let gated = Gated::fork(&args.command).context("cannot start a process")?;
    let task =
        task::identify(gated.pid()).context("the program ended before it had its reservation")?;
    actuator
        .reserve(task, reservation)
        .with_context(|| format!("cannot reserve {reservation}"))?;
    let code = gated.run_to_end(&signals);
    actuator.ended(task);
    Ok(code?)
}
